// A form of a spec, made from its schema. Values are checked by the server, not by the browser.

import { h, prose } from "./dom.js";
import { formatPath, setAt, valueAt } from "./schema.js";

/** What is typed as data: JSON where it is valid, otherwise a text; nothing is the default. */
export function parseValue(text) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  try {
    const value = JSON.parse(trimmed);
    return value === Infinity || value === -Infinity ? trimmed : value; // JSON has no infinity
  } catch {
    return trimmed;
  }
}

function formatValue(value) {
  if (value === undefined) return "";
  if (typeof value === "string") return typeof parseValue(value) === "string" ? value : JSON.stringify(value);
  return JSON.stringify(value);
}

export class SpecForm {
  /**
   * @param schema the schema of specs.
   * @param onchange called after each change of the data.
   * @param onslot called with path, field and button to choose the part of a slot.
   */
  constructor(schema, { onchange, onslot }) {
    this.schema = schema;
    this.onchange = onchange;
    this.onslot = onslot;
    this.element = h("form", { class: "spec", onsubmit: (event) => event.preventDefault() });
    this.opened = new Map();
    this.errors = [];
  }

  /** Show data; the field in focus and what is open stay. */
  show(data) {
    this.data = data;
    const focused = document.activeElement?.id;
    this.element.replaceChildren(...this.fields(this.schema.sections(), [], data));
    if (focused && !focused.startsWith("main")) document.getElementById(focused)?.focus();
    this.showErrors(this.errors);
  }

  set(path, value) {
    setAt(this.data, path, value);
    this.onchange();
  }

  /** Change the structure, and show the form again. */
  restructure(path, value) {
    setAt(this.data, path, value);
    if (value !== undefined) this.opened.set(formatPath(path), true);
    this.show(this.data);
    this.focusNear(path);
    this.onchange();
  }

  /** If what had the focus is gone, focus the field of a path, or the innermost one around it. */
  focusNear(path) {
    for (let length = path.length; length && document.activeElement === document.body; length -= 1) this.reveal(formatPath(path.slice(0, length)));
  }

  fields(parameters, path, value) {
    const present = value !== null && typeof value === "object" ? value : {};
    const isShown = ({ name, isRequired }) => isRequired || name in present;
    const rest = parameters.filter((each) => !isShown(each));
    const shown = parameters.filter(isShown).map((each) => this.parameter(each, [...path, each.name]));
    if (!rest.length) return shown;
    const more = h("summary", {}, `${rest.length} more: `, h("span", { class: "muted" }, rest.map((each) => each.name).join(", ")));
    const inner = rest.map((each) => this.parameter(each, [...path, each.name]));
    return [...shown, this.details(`${formatPath(path)}…`, false, { class: "more" }, more, ...inner)];
  }

  /** Details that stay open or closed when the form is shown again. */
  details(key, isOpen, properties, ...children) {
    const element = h("details", { ...properties, open: this.opened.get(key) ?? isOpen }, ...children);
    element.addEventListener("toggle", () => this.opened.set(key, element.open));
    return element;
  }

  parameter({ name, node, isRequired, text }, path) {
    const field = { ...this.schema.field(node), isRequired, text, label: name };
    return this.field(field, path);
  }

  field(field, path) {
    const value = valueAt(this.data, path);
    if (field.kind === "slot") return this.slot(field, path, value);
    if (field.kind === "object") return this.object(field, path, value);
    if (field.kind === "list" || field.kind === "map") return this.several(field, path, value);
    return this.input(field, path, value);
  }

  input(field, path, value) {
    const text = formatPath(path);
    const id = `field-${text}`;
    const shared = { id, "aria-describedby": `${id}-error ${id}-help` };
    const control = field.kind === "choice" || field.kind === "boolean"
      ? this.select(field, path, value, shared)
      : this.textInput(field, path, value, shared);
    return h("div", { class: "field", "data-path": text },
      h("label", { for: id }, field.label),
      h("div", { class: "control" }, control,
        h("p", { class: "error", id: `${id}-error`, hidden: true }),
        h("p", { class: "help", id: `${id}-help` }, prose(field.text))));
  }

  textInput(field, path, value, shared) {
    const isText = field.kind === "string";
    const placeholder = field.default === undefined || field.default === null ? "" : `default: ${formatValue(field.default)}`;
    const oninput = ({ target }) => this.set(path, isText ? target.value || undefined : parseValue(target.value));
    const shown = isText && typeof value === "string" ? value : formatValue(value);
    const inputmode = field.kind === "integer" ? "numeric" : null;
    return h("input", { ...shared, type: "text", value: shown, placeholder, inputmode, oninput, autocomplete: "off", spellcheck: "false" });
  }

  select(field, path, value, shared) {
    const choices = field.kind === "boolean" ? [true, false] : field.choices;
    const texts = choices.map((choice) => JSON.stringify(choice));
    const unset = field.isRequired ? "choose …" : `default${field.default === undefined ? "" : `: ${formatValue(field.default)}`}`;
    const onchange = ({ target }) => this.set(path, target.value === "" ? undefined : JSON.parse(target.value));
    const current = value === undefined ? "" : JSON.stringify(value);
    const other = current !== "" && !texts.includes(current) ? [h("option", { value: current }, formatValue(value))] : [];
    const element = h("select", { ...shared, onchange }, h("option", { value: "" }, unset), other,
      choices.map((choice, index) => h("option", { value: texts[index] }, String(choice))));
    element.value = current;
    return element;
  }

  /** A heading of a part with its error and its text. */
  heading(field, path, ...controls) {
    const id = `field-${formatPath(path)}`;
    return [
      h("div", { class: "heading" }, h("span", { class: "label" }, field.label), ...controls),
      h("p", { class: "error", id: `${id}-error`, hidden: true }),
      field.text ? h("p", { class: "help" }, prose(field.text)) : "",
    ];
  }

  remove(field, path) {
    if (field.isRequired) return "";
    const text = formatPath(path);
    return h("button", { type: "button", class: "quiet", "aria-label": `Remove ${text}`, onclick: () => this.restructure(path, undefined) }, "remove");
  }

  slot(field, path, value) {
    const text = formatPath(path);
    const part = value === undefined || value === null ? null : this.schema.partOf(field, value);
    const named = typeof value === "string" ? value : value?.type;
    const label = value === undefined || value === null ? "choose …" : part?.type === null ? field.definition : named ?? "choose …";
    const choose = h("button", {
      type: "button", class: "part", id: `field-${text}`, "aria-haspopup": "dialog", "aria-describedby": `field-${text}-error`,
      "aria-label": `${text}: ${label}`, onclick: () => this.onslot(path, field),
    }, label);
    const inner = part ? this.fields(this.schema.parameters(part.definition), path, value) : [];
    const isSet = value !== undefined && value !== null;
    const head = this.heading(field, path, choose, isSet ? this.remove(field, path) : "");
    const body = inner.length ? this.details(text, path[0] === "model", { class: "parameters" }, h("summary", {}, "parameters"), ...inner) : "";
    return h("section", { class: "slot", "data-path": text }, ...head, body);
  }

  object(field, path, value) {
    const text = formatPath(path);
    if (value === undefined || value === null) {
      const add = h("button", { type: "button", id: `field-${text}`, class: "quiet", onclick: () => this.restructure(path, {}), "aria-label": `Set ${text}` }, "set");
      return h("section", { class: "slot", "data-path": text }, ...this.heading(field, path, add));
    }
    if (typeof value !== "object" && field.shorthand) return this.input({ ...field, kind: "data" }, path, value);
    const inner = this.fields(this.schema.parameters(field.definition), path, value);
    const id = `field-${text}`;
    const body = this.details(text, path[0] === "model", { class: "parameters" }, h("summary", { id, "aria-describedby": `${id}-error` }, "parameters"), ...inner);
    return h("section", { class: "slot", "data-path": text }, ...this.heading(field, path, this.remove(field, path)), body);
  }

  several(field, path, value) {
    const text = formatPath(path);
    const isList = field.kind === "list";
    const keys = Object.keys(value ?? {}).map((key) => (isList ? Number(key) : key));
    const items = keys.map((key) => this.field({ ...field.items, label: isList ? `${key}` : key, isRequired: false, text: "" }, [...path, key]));
    const name = isList ? null : h("input", { type: "text", "aria-label": `Name of a new entry of ${text}`, placeholder: "name", class: "short" });
    const add = h("button", { type: "button", id: `field-${text}`, class: "quiet", "aria-label": `Add to ${text}`, onclick: () => this.add(field, path, name?.value) }, "add");
    const head = this.heading(field, path, name ?? "", add);
    return h("section", { class: "slot", "data-path": text }, ...head, h("div", { class: "items" }, ...items));
  }

  add(field, path, name) {
    if (field.kind === "map" && !name) return this.element.querySelector(`[data-path="${CSS.escape(formatPath(path))}"] input.short`).focus();
    const key = field.kind === "list" ? (valueAt(this.data, path) ?? []).length : name;
    if (field.items.kind === "slot") this.onslot([...path, key], field.items);
    else this.restructure([...path, key], {});
  }

  /** Show each error at its field, or at the innermost part around it that is shown. */
  showErrors(errors) {
    this.errors = errors;
    for (const element of this.element.querySelectorAll(".error")) element.hidden = true;
    for (const element of this.element.querySelectorAll("[aria-invalid]")) element.removeAttribute("aria-invalid");
    for (const error of errors) {
      const place = this.placeOf(error);
      const message = place && document.getElementById(`field-${place}-error`);
      if (!message) continue;
      message.textContent = message.hidden ? error.message : `${message.textContent}\n${error.message}`;
      message.hidden = false;
      document.getElementById(`field-${place}`)?.setAttribute("aria-invalid", "true");
    }
  }

  /** Return the path of the field at which an error is shown; null if there is none. */
  placeOf(error) {
    const missing = error.message.match(/^key '([^']+)' is missing/);
    let path = missing ? `${error.path}${error.path ? "." : ""}${missing[1]}` : error.path;
    while (path && !this.element.querySelector(`[data-path="${CSS.escape(path)}"]`)) path = path.replace(/(\.[^.[]*|\[\d+\])$|^[^.[]*$/, "");
    return path || null;
  }

  /** Move the focus to the field of an error, and open what is around it. */
  focus(error) {
    const place = this.placeOf(error);
    if (place) this.reveal(place)?.scrollIntoView({ block: "center" });
  }

  /** Focus the field of a path, and open what is around it; return it. */
  reveal(place) {
    const element = document.getElementById(`field-${place}`);
    for (let outer = element?.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
    element?.focus();
    return element;
  }
}
