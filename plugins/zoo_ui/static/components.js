// The pages of components: a list that is searched, and one page for each.

import { h, get, request, copyButton, problem, prose } from "./dom.js";
import { address, noPage, replace } from "./state.js";
import { registry } from "./registry.js";
import { formula } from "./formula.js";
import { toYaml } from "./yaml.js";

export async function show(content, path, query, signal) {
  const known = await registry();
  if (path.length === 3) await showComponent(content, path, signal);
  else if (path.length) throw noPage(["components", ...path]);
  else showList(content, known, query);
}

function link(component) {
  return address(["components", component.kind, component.plugin, component.name]);
}

function showList(content, known, query) {
  const results = h("div", { class: "results" });
  const search = h("input", { type: "search", id: "search", value: query.get("q") ?? "", placeholder: "additive, Luong, window …", oninput: update });
  const kind = h("select", { id: "kind", onchange: update }, h("option", { value: "" }, "all kinds"),
    known.kinds.map((name) => h("option", { value: name }, name)));
  kind.value = query.get("kind") ?? "";

  function update() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = known.components.filter((each) => {
      const text = `${each.kind} ${each.name} ${each.plugin} ${each.distribution} ${each.summary} ${each.paper}`.toLowerCase();
      return (!kind.value || each.kind === kind.value) && words.every((word) => text.includes(word));
    });
    replace(["components"], { q: search.value, kind: kind.value });
    const groups = known.kinds.map((name) => [name, found.filter((each) => each.kind === name)]).filter(([, group]) => group.length);
    results.replaceChildren(
      h("p", { class: "muted" }, `${found.length} of ${known.components.length} components`),
      ...groups.map(([name, group]) => h("section", {}, h("h2", {}, name), h("ul", { class: "cards" }, group.map(card)))),
    );
  }

  content.replaceChildren(
    h("h1", {}, "Components"),
    h("p", { class: "lead" }, "The parts that models are composed of, from every installed plugin."),
    known.problems.length ? h("details", { class: "problem" }, h("summary", {}, `${known.problems.length} problems of plugins`),
      h("ul", {}, known.problems.map((each) => h("li", {}, `${each.plugin} (${each.distribution}): ${each.message}`)))) : "",
    h("div", { class: "filters" },
      h("div", {}, h("label", { for: "search" }, "Search"), search),
      h("div", {}, h("label", { for: "kind" }, "Kind"), kind)),
    results,
  );
  update();
}

function card(component) {
  return h("li", {}, h("a", { href: link(component), class: "card" },
    h("span", { class: "name" }, component.name),
    component.is_third_party ? h("span", { class: "tag" }, component.distribution) : "",
    h("span", { class: "summary" }, prose(component.summary))));
}

async function showComponent(content, [kind, plugin, name], signal) {
  const component = await get("/api/component", { kind, plugin, name });
  document.title = `${name} – zoo`;
  const settable = component.parameters.filter((each) => each.default !== "");
  content.replaceChildren(
    h("p", { class: "crumbs" }, h("a", { href: "#/components" }, "Components"), " / ", h("a", { href: address(["components"], { kind }) }, kind)),
    h("h1", {}, component.name, h("span", { class: "tag" }, kind), component.is_third_party ? h("span", { class: "tag" }, "third party") : ""),
    h("div", { class: "columns" },
      h("div", {}, component.blocks.map(block), component.paper ? paper(component.paper) : "", parametersTable(component.parameters)),
      h("aside", {},
        h("section", { class: "panel" }, h("h2", {}, "Laws"), laws({ kind, plugin, name }, signal)),
        kind === "acceleration" ? "" : fragment(component, settable),
        h("section", { class: "panel" }, h("h2", {}, "From"), h("dl", {},
          h("dt", {}, "plugin"), h("dd", {}, component.plugin),
          h("dt", {}, "distribution"), h("dd", {}, `${component.distribution} ${component.distribution_version}`),
          h("dt", {}, "version"), h("dd", {}, String(component.version)),
          component.slots.length ? [h("dt", {}, "slots"), h("dd", {}, component.slots.join(", "))] : [],
          component.serves ? [h("dt", {}, "replaces"), h("dd", {}, component.serves)] : [])))),
  );
}

function block({ type, title, text }) {
  if (type === "formula") return formula(text);
  if (type === "section") return h("section", {}, h("h2", {}, title), h("p", { class: "prose lines" }, prose(text)));
  return h("p", { class: "prose lines" }, prose(text));
}

function paper(text) {
  const found = text.match(/arXiv:(\d{4}\.\d{4,5})/);
  return h("p", { class: "paper" }, text, found ? [" ", h("a", { href: `https://arxiv.org/abs/${found[1]}`, rel: "noreferrer", target: "_blank" }, "arxiv.org")] : "");
}

function parametersTable(parameters) {
  if (!parameters.length) return h("p", { class: "muted" }, "No parameters.");
  return h("section", {}, h("h2", {}, "Parameters"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parameters" }, h("table", {},
    h("thead", {}, h("tr", {}, ["parameter", "values", "default"].map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, parameters.map((each) => h("tr", {},
      h("th", { scope: "row" }, h("code", {}, each.name)),
      h("td", {}, each.values, each.text ? h("div", { class: "muted" }, prose(each.text)) : ""),
      h("td", {}, h("code", {}, each.default))))))));
}

function fragment(component, settable) {
  const required = settable.filter((each) => each.default === "required").map((each) => `${each.name}:  # required\n`);
  const text = `${toYaml({ type: component.name })}${required.join("")}`;
  return h("section", { class: "panel" }, h("h2", {}, `In a slot for ${component.kind === "part" ? component.slots.join(" or ") : component.kind}`), h("pre", { tabindex: "0" }, text), copyButton("Copy YAML", () => text));
}

/** The laws of a component, run when the button is pressed. */
function laws(component, signal) {
  const list = h("ul", { class: "laws" });
  const status = h("p", { class: "muted", role: "status" }, "The tests that every component of this kind passes, run on small configurations of it.");
  const button = h("button", { type: "button", onclick: run }, "Run the laws");

  async function run() {
    button.disabled = true;
    list.replaceChildren();
    const rows = new Map();
    status.textContent = "Running …";
    try {
      const run = crypto.randomUUID();
      for (let isComplete = false; !isComplete && !signal.aborted;) {
        const answer = await request("/api/laws", { run, ...component }, signal);
        for (const outcome of answer.outcomes) add(rows, outcome);
        isComplete = answer.is_complete;
      }
      const failed = [...rows.values()].filter((row) => row.counts.failed).length;
      const badge = failed ? `${failed} of ${rows.size} laws fail` : `all ${rows.size} laws hold`;
      status.textContent = badge;
    } catch (error) {
      if (error.name !== "AbortError") status.replaceChildren(problem(error));
    }
    button.disabled = false;
  }

  function add(rows, outcome) {
    if (!rows.has(outcome.law)) {
      const badge = h("span", { class: "badge" });
      const reason = h("p", { class: "muted" });
      list.append(h("li", {}, badge, h("span", {}, outcome.law), h("p", { class: "muted" }, prose(outcome.statement)), reason));
      rows.set(outcome.law, { badge, reason, counts: { passed: 0, failed: 0, skipped: 0 } });
    }
    const row = rows.get(outcome.law);
    row.counts[outcome.status] += 1;
    const state = row.counts.failed ? "failed" : row.counts.passed ? "passed" : "skipped";
    row.badge.className = `badge ${state}`;
    row.badge.textContent = row.counts[state] > 1 ? `${state} ${row.counts[state]}` : state;
    if (outcome.status === "failed" || state === "skipped") row.reason.textContent = outcome.message;
  }

  return [status, button, list];
}
