// The parts that fit a slot, with the difference in parameters, and a comparison of one with the present.

import { h, bytes, count, copyButton, problem, prose, request } from "./dom.js";
import { formatPath, valueAt } from "./schema.js";
import { toYaml, flow } from "./yaml.js";

function difference(parameters, base) {
  if (base === null) return count(parameters);
  const change = parameters - base;
  return change === 0 ? "±0" : `${change > 0 ? "+" : "−"}${count(Math.abs(change))}`;
}

/** Show a dialog with a heading, which ends with Escape, its button, or its page. */
function dialog({ title, signal, onclose }, ...children) {
  const element = h("dialog", { "aria-label": title, onclose: () => {
    element.remove();
    onclose();
  } },
    h("div", { class: "heading" }, h("h2", {}, title), h("button", { type: "button", class: "quiet", onclick: () => element.close() }, "Close")),
    ...children);
  document.body.append(element);
  element.showModal();
  signal.addEventListener("abort", () => element.close());
  return element;
}

/**
 * Let the user choose the part of a slot.
 *
 * @param schema the schema of specs.
 * @param data the spec; it is not changed.
 * @param parameters the number of parameters of the spec; null if it does not pass.
 * @param compare the name of a part to compare with the present one, or null.
 * @param signal aborted when the page is left.
 * @param onopen called with what is open, as parameters of the address.
 * @param onselect called with the value of the slot.
 * @param onadd called with sections to add to the spec.
 */
export function chooseParts({ schema, data, path, field, parameters, compare: wantedName, signal, onopen, onselect, onadd }) {
  const value = valueAt(data, path);
  const current = value === undefined || value === null ? null : schema.partOf(field, value);
  const status = h("p", { class: "muted", role: "status" }, "Checking each part in this slot …");
  const list = h("ul", { class: "parts" });
  const rejected = h("ul", { class: "problems" });
  const others = h("details", { hidden: true }, h("summary", {}), rejected);
  const slot = formatPath(path);
  const element = dialog({ title: `Parts for ${slot}`, signal, onclose: () => onopen({}) }, list, others, status);
  onopen({ slot });

  const candidates = field.parts.map((part) => ({ type: part.type ?? "", values: part === current ? [value] : schema.candidates(part, value, data) }));
  const wanted = new Map(field.parts.map((part) => [part.type ?? "", part]));

  function add(result) {
    const part = wanted.get(result.type);
    const name = part.type ?? field.definition;
    if (!result.ok) {
      rejected.append(h("li", {}, h("strong", {}, name), ` ${result.reason}`, " ",
        h("button", { type: "button", class: "quiet", "aria-label": `Use ${name} nevertheless`, onclick: () => select(candidates.find((each) => each.type === result.type).values[0]) }, "use nevertheless")));
      others.hidden = false;
      others.firstChild.textContent = rejected.children.length === 1 ? "1 part does not fit" : `${rejected.children.length} parts do not fit`;
      return;
    }
    const isCurrent = part === current;
    const use = h("button", { type: "button", class: "part", "aria-current": isCurrent ? "true" : null, onclick: () => select(result.value) }, name);
    const isChecked = result.parameters !== null;
    const compare = isCurrent || current === null || !isChecked ? "" : h("button", {
      type: "button", class: "quiet", "aria-label": `Compare ${current.type ?? field.definition} with ${name}`,
      onclick: () => {
        onopen({ slot, compare: name });
        showComparison({ data, path, value, other: result.value, name, current: current.type ?? field.definition, onadd: extend, signal, onclose: () => element.open && onopen({ slot }) });
      },
    }, "compare");
    const needs = result.needs.length && !isCurrent ? ` Fits; then set ${result.needs.join(", ")}.` : "";
    list.append(h("li", {}, use, h("span", { class: "summary" }, prose(part.summary), needs),
      h("span", { class: "number" }, isCurrent ? "present" : isChecked ? difference(result.parameters, parameters) : ""), compare));
    if (list.children.length === 1) use.focus();
    if (compare && name === wantedName) compare.click();
  }

  function extend(sections) {
    Object.assign(data, sections);
    onadd(sections);
  }

  function select(chosen) {
    element.close();
    onselect(chosen);
  }

  async function check() {
    const waiting = setTimeout(() => (status.textContent = "Loading torch and the components, which takes a while the first time …"), 1500);
    try {
      for (const { type, values } of candidates) {
        if (!element.open) return;
        const result = await request("/api/part", { data, path, values });
        clearTimeout(waiting);
        add({ type, ...result });
      }
      const numbers = parameters === null ? list.querySelector(".number:not(:empty)") ? " The number is that of all parameters." : "" : " The number is the difference in parameters.";
      const others = parameters === null ? " Problems elsewhere in the spec do not count." : "";
      status.textContent = `${list.children.length} of ${candidates.length} parts fit.${numbers}${others}`;
    } catch (error) {
      clearTimeout(waiting);
      status.replaceChildren(problem(error));
    }
  }
  check();
}

/** The study and the command that compare the present value of a slot with another one. */
export function comparison({ data, path, value, other, name }) {
  const text = formatPath(path);
  const specFile = `${data.name}.yaml`;
  const studyFile = `compare-${path.at(-1)}.yaml`;
  const study = { zoo: 1, name: `compare-${path.at(-1)}`, title: `${data.name}: ${text}`, base: specFile, groups: { [path.at(-1)]: { swap: { [text]: [other] } } } };
  return { specFile, studyFile, study: toYaml(study), spec: toYaml(data), command: `zoo compare ${studyFile}`, name, value: flow(value ?? null) };
}

/**
 * Compare the present value of a slot with another one: untrained here, and trained with a command.
 *
 * @param onadd called with sections that are added to the spec, so that it can be trained.
 */
function showComparison(options) {
  const training = h("div");
  const show = () => training.replaceChildren(...(options.data.train ? files(options) : starters(options, show)));
  show();
  dialog({ title: `Compare with ${options.name}`, ...options }, untrained(options), training);
}

/** Sizes and times of both values without training. */
function untrained({ data, path, value, other, name, current }) {
  const status = h("p", { class: "muted", role: "status" }, "Measuring both …"), result = h("div");
  const time = (milliseconds) => (milliseconds === null ? "–" : `${milliseconds.toPrecision(3)} ms`);
  const rows = [["parameters", "parameters", count], ["bytes", "bytes", bytes], ["forward pass", "forward", time], ["forward pass and gradients", "training", time]];
  request("/api/measure", { data, path, values: [value, other] }).then((found) => {
    status.textContent = "Random weights, a batch of 8 examples of length 16, on this machine; the median of 5.";
    result.replaceChildren(h("table", {},
      h("thead", {}, h("tr", {}, h("td", {}), [current, name].map((each) => h("th", { scope: "col", class: "number" }, each)))),
      h("tbody", {}, rows.map(([title, key, format]) => h("tr", {}, h("th", { scope: "row" }, title), found.map((each) => h("td", { class: "number" }, format(each[key]))))))));
  }, (error) => status.replaceChildren(problem(error)));
  return h("section", {}, h("h3", {}, "Without training"), result, status);
}

/** The files and the command of a comparison that trains both. */
function files(options) {
  const made = comparison(options), inList = options.path.some((step) => typeof step === "number");
  return [h("h3", {}, "With training"),
    inList ? h("p", { class: "warning" }, "The slot is in a list, and a study names values by keys only: change the whole list in the study.") : "",
    h("p", {}, "Save both files in one folder, and run the command. It trains the present spec and the variant with three seeds each."),
    file(made.specFile, made.spec), file(made.studyFile, made.study),
    h("h3", {}, "Command"), h("pre", { tabindex: "0" }, made.command), copyButton("Copy command", () => made.command)];
}

/** The sections "train" that fit a spec without one, each with a button that adds it. */
function starters({ data, onadd }, show) {
  const status = h("p", { class: "muted", role: "status" }, "Looking for datasets that fit …"), list = h("ul", { class: "parts" });
  const add = (sections) => {
    onadd(sections);
    show();
  };
  request("/api/starters", { data }).then((found) => {
    status.textContent = found.length ? "Add one that fits the model; then replace its files by yours in the form." : "No installed dataset fits this model; write a section 'train' in the form.";
    list.replaceChildren(...found.map(({ dataset, summary, sections }) => h("li", {},
      h("button", { type: "button", class: "part", "aria-label": `Add train with ${dataset}`, onclick: () => add(sections) }, dataset), h("span", { class: "summary" }, summary))));
  }, (error) => status.replaceChildren(problem(error)));
  return [h("h3", {}, "With training"), h("p", {}, "To train both, the spec needs a section 'train', which names the data."), status, list];
}

function file(name, text) {
  const download = h("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "application/yaml" })), class: "button quiet" }, `Save ${name}`);
  return h("section", {}, h("h3", {}, name), h("pre", { tabindex: "0", class: "short-text" }, text), copyButton(`Copy ${name}`, () => text), " ", download);
}
