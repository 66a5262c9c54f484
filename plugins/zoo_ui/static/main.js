// The page: which part of it the address names.

import { h, copy, problem } from "./dom.js";
import { noPage, read } from "./state.js";
import * as components from "./components.js";
import * as build from "./build.js";
import * as models from "./models.js";

const PAGES = { components, build, models };
const main = document.getElementById("main");
let leave = null;

async function show() {
  const { path, query } = read();
  const name = path[0] ?? "components";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  leave?.();
  const controller = new AbortController();
  leave = () => controller.abort();
  document.title = `${name} – zoo`;
  const content = h("div", { class: `page page-${name}` });
  main.replaceChildren(content);
  try {
    if (!Object.hasOwn(PAGES, name)) throw noPage(path);
    await PAGES[name].show(content, path.slice(1), query, controller.signal);
  } catch (error) {
    if (error.name !== "AbortError") content.replaceChildren(h("h1", {}, "This page cannot be shown"), problem(error));
  }
}

addEventListener("hashchange", () => {
  show();
  main.focus();
  scrollTo(0, 0);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is the state of the page
  main.focus();
});
document.getElementById("share").addEventListener("click", (event) => copy(event.currentTarget, location.href));
show();
