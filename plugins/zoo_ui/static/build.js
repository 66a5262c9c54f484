// The page that builds a spec: a form, and beside it what the server's check says.

import { h, request, copyButton, problem } from "./dom.js";
import { address, pack, replace, unpack } from "./state.js";
import { registry, schema as loadSchema, specs } from "./registry.js";
import { SpecSchema } from "./schema.js";
import { SpecForm } from "./form.js";
import { chooseParts } from "./parts.js";
import { problems, totals, tree } from "./report.js";
import { toYaml } from "./yaml.js";

const DELAY = 120; // milliseconds without a key before a check
const EMPTY = { zoo: 1, name: "my-model" };
const page = crypto.randomUUID();
let sequence = 0;

export async function show(content, path, query, signal) {
  const source = query.get("file") ?? query.get("spec") ?? query.get("recipe");
  if (!source && !query.has("data")) return showChoice(content);
  content.replaceChildren(h("h1", {}, "Build"), h("p", { class: "muted", role: "status" }, "Loading torch and the components …"));
  const [known, loaded] = await Promise.all([registry(), loadSchema()]);
  const named = query.has("recipe") ? { recipe: source } : { source };
  const data = source ? (await request("/api/spec", named, signal)).data : await unpack(query.get("data"));
  if (!signal.aborted) new Builder(content, new SpecSchema(loaded, known.arguments), data, signal, source ? query : null);
}

async function open(data) {
  location.hash = address(["build"], { data: await pack(data) });
}

async function showChoice(content) {
  loadSchema().catch(() => {}); // torch is loaded while the list is read
  let known = null;
  const results = h("ul", { class: "cards" }, h("li", { class: "muted" }, "Reading the specs …"));
  const search = h("input", { type: "search", id: "search", placeholder: "translation, tiny, vision …", oninput: update });
  const trained = h("input", { type: "checkbox", id: "trained", onchange: update });
  const text = h("textarea", { id: "paste", rows: "6", placeholder: "zoo: 1\nname: my-model\nmodel: …", spellcheck: "false" });
  const errors = h("div");
  content.replaceChildren(
    h("h1", {}, "Build"),
    h("p", { class: "lead" }, "Start from a spec of a plugin, from a recipe, which also has data and training, from YAML, or from nothing."),
    h("div", { class: "columns" },
      h("div", {}, h("div", { class: "filters" }, h("div", {}, h("label", { for: "search" }, "Search specs and recipes"), search),
        h("div", { class: "check" }, trained, h("label", { for: "trained" }, "with training"))), results),
      h("aside", {}, h("section", { class: "panel" }, h("h2", {}, "YAML"), h("label", { for: "paste" }, "Paste a spec, or the state of a page"), text, errors,
        h("button", { type: "button", onclick: () => openText(text.value, errors) }, "Open"), " ",
        h("button", { type: "button", class: "quiet", onclick: () => open(EMPTY) }, "Empty spec")))));

  function update() {
    if (!known) return; // they are shown when they are read
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = known.filter((each) => (each.has_training || !trained.checked)
      && words.every((word) => `${each.name} ${each.plugin} ${each.description} ${each.is_recipe ? "recipe" : ""}`.toLowerCase().includes(word)));
    results.replaceChildren(...found.map((each) => h("li", {}, h("a", { class: "card", href: address(["build"], { [each.is_recipe ? "recipe" : "spec"]: each.name }) },
      h("span", { class: "name" }, each.name), each.is_recipe ? h("span", { class: "tag" }, "recipe") : "", h("span", { class: "summary" }, each.description)))));
  }
  known = await specs();
  update();
}

async function openText(text, errors) {
  try {
    const answer = await request("/api/parse", { text });
    if (!answer.ok) errors.replaceChildren(problems(answer.errors, () => {}));
    else if (answer.data?.page === "models") location.hash = address(["models"], { ...answer.data, page: "" });
    else if (answer.data === null || typeof answer.data !== "object" || Array.isArray(answer.data)) errors.replaceChildren(problem("A spec is a mapping, such as 'zoo: 1'."));
    else await open(answer.data);
  } catch (error) {
    errors.replaceChildren(problem(error));
  }
}

class Builder {
  constructor(content, schema, data, signal, source) {
    this.schema = schema;
    this.data = data;
    this.signal = signal;
    this.report = null;
    this.status = h("p", { class: "status", role: "status" }, "Checking …");
    this.result = h("div");
    this.yaml = h("pre", { tabindex: "0", id: "yaml" });
    this.form = new SpecForm(schema, { onchange: () => this.changed(), onslot: (path, field) => this.choose(path, field) });
    content.replaceChildren(
      h("h1", {}, "Build"),
      h("div", { class: "workbench" },
        h("div", { class: "editor" }, this.form.element),
        h("aside", {},
          h("section", { class: "panel check", "aria-label": "Check" }, this.status, this.result),
          h("section", { class: "panel" }, h("div", { class: "heading" }, h("h2", {}, "YAML"),
            copyButton("Copy YAML", () => toYaml(this.data)),
            h("a", { href: "#/build", class: "button quiet" }, "Open another")), this.yaml))));
    this.form.show(data);
    this.update(source);
    this.check();
  }

  changed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), DELAY);
    this.update(null);
  }

  /** Show the YAML and the state in the address; an unchanged spec is named. */
  async update(source) {
    this.yaml.textContent = toYaml(this.data);
    if (source) return;
    const packed = await pack(this.data);
    if (!this.signal.aborted) replace(["build"], { data: packed });
  }

  async check() {
    sequence += 1;
    const own = sequence;
    this.status.className = "status busy";
    try {
      const report = await request("/api/check", { page, sequence: own, data: this.data }, this.signal);
      if (own === sequence && !report.superseded) this.showReport(report);
    } catch (error) {
      if (error.name === "AbortError" || own !== sequence) return;
      this.status.className = "status invalid";
      this.status.textContent = error.message;
    }
  }

  showReport(report) {
    this.report = report.ok ? report : null;
    this.form.showErrors(report.errors ?? []);
    this.status.className = `status ${report.ok ? "valid" : "invalid"}`;
    const found = report.errors?.length;
    this.status.textContent = report.ok ? `Valid: ${totals(report)}` : `${found} problem${found > 1 ? "s" : ""}`;
    this.result.replaceChildren(report.ok ? tree(report) : problems(report.errors, (error) => this.form.focus(error)));
  }

  /** Add sections, such as "train", and check the spec again. */
  add(sections) {
    Object.assign(this.data, sections);
    this.form.show(this.data);
    this.changed();
  }

  choose(path, field) {
    const parameters = this.report?.parameters ?? null;
    chooseParts({ schema: this.schema, data: structuredClone(this.data), path, field, parameters, onselect: (value) => this.form.restructure(path, value), onadd: (sections) => this.add(sections) });
  }
}
