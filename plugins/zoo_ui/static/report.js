// The result of a check: the tree of parts with shapes and sizes, or the problems.

import { h, bytes, count } from "./dom.js";

function depth(path) {
  return path.split(/[.[]/).length - 1;
}

function row(part) {
  const indent = Math.min(depth(part.path), 10);
  const name = part.path.split(".").at(-1) + (part.count > 1 ? ` ×${part.count}` : "");
  return h("tr", { title: part.path },
    h("th", { scope: "row", class: `indent-${indent}` }, name),
    h("td", { class: "type" }, part.type),
    h("td", {}, part.shape ?? ""),
    h("td", { class: "number" }, part.parameters ? count(part.parameters) : ""),
    h("td", { class: "number" }, part.bytes ? bytes(part.bytes) : ""));
}

/** The tree of a spec that passes. */
export function tree(report) {
  const columns = [["part", ""], ["type", ""], ["output", ""], ["parameters", "number"], ["bytes", "number"]];
  return h("div", {},
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parts of the model" }, h("table", { class: "tree" },
      h("thead", {}, h("tr", {}, columns.map(([name, style]) => h("th", { scope: "col", class: style || null }, name)))),
      h("tbody", {}, report.parts.map(row)))),
    h("p", { class: "muted" }, "B batch, S source length, T other lengths"),
    report.warnings.map((message) => h("p", { class: "warning" }, message)),
    report.init ? h("p", { class: "muted" }, `init ${report.init.type}: ${count(report.init.parameters)} parameters`) : "");
}

export function totals(report) {
  return `${count(report.parameters)} parameters, ${bytes(report.bytes)}`;
}

/** The problems of a spec, each with a button that moves to its place. */
export function problems(errors, onselect) {
  return h("ul", { class: "problems" }, errors.map((error) => h("li", {},
    h("button", { type: "button", class: "quiet", onclick: () => onselect(error) }, error.line ? `line ${error.line}` : error.path || "spec"), ` ${error.message}`)));
}
