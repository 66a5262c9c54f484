// Formulas in TeX, by KaTeX, which is loaded when the first one is shown.

import { h } from "./dom.js";

let loading = null;

function load() {
  loading ??= new Promise((resolve, reject) => {
    document.head.append(
      h("link", { rel: "stylesheet", href: "/static/katex/katex.min.css" }),
      h("script", { src: "/static/katex/katex.min.js", onload: () => resolve(window.katex), onerror: reject }),
    );
  });
  return loading;
}

/** An element that shows a formula; its source until it is rendered, and if it cannot be. */
export function formula(source) {
  const element = h("div", { class: "formula", tabindex: "0", role: "group", "aria-label": "Formula" }, h("code", {}, source));
  load().then((katex) => {
    const rendered = h("div");
    katex.render(source, rendered, { displayMode: true, throwOnError: true });
    element.replaceChildren(...rendered.childNodes);
  }).catch((error) => element.append(h("p", { class: "muted" }, String(error.message ?? "KaTeX cannot be loaded"))));
  return element;
}
