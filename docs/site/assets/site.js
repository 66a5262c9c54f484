// Maths, colours, menu and search of a page.
const top_ = document.currentScript.dataset.top;
const byId = (id) => document.getElementById(id);

// The cheatsheet has hundreds of equations: the page is shown after the first ones.
async function renderMaths() {
  let count = 0;
  for (const element of document.querySelectorAll(".math")) {
    const displayMode = element.tagName === "DIV";
    katex.render(element.textContent, element, { displayMode, throwOnError: false });
    count += 1;
    if (count % 20 === 0) await new Promise((done) => setTimeout(done));
  }
}
renderMaths();

// Colours: as the system, light, dark.
const THEMES = ["auto", "light", "dark"];
const NAMES = { auto: "as the system", light: "light", dark: "dark" };
const root = document.documentElement;
function nameTheme() {
  byId("site-theme").setAttribute("aria-label", `Colours: ${NAMES[root.dataset.theme]}`);
}
byId("site-theme").addEventListener("click", () => {
  const next = (THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length;
  root.dataset.theme = THEMES[next];
  nameTheme();
  try {
    localStorage.setItem("zoo-theme", THEMES[next]);
  } catch {
    // Storage may be disabled.
  }
});
nameTheme();

// The menu of narrow windows.
byId("site-menu").addEventListener("click", () => {
  const open = document.body.classList.toggle("menu-open");
  byId("site-menu").setAttribute("aria-expanded", String(open));
});
const current = document.querySelector("#site-sidebar [aria-current]");
if (current) current.scrollIntoView({ block: "center" });

// Search: the index is a script, which a page from a file may load too.
let loading;
function loadIndex() {
  loading ??= new Promise((done) => {
    const script = document.createElement("script");
    script.src = `${top_}assets/search-index.js`;
    script.onload = done;
    document.head.append(script);
  });
  return loading;
}

function show(query) {
  const panel = byId("site-results");
  panel.hidden = query.length < 2;
  panel.replaceChildren();
  if (query.length < 2) return;
  const matches = searchPages(window.zooSearch, query).slice(0, 12);
  const status = document.createElement("p");
  status.textContent = matches.length ? `Pages about “${query}”` : `No page has “${query}”`;
  panel.append(status);
  for (const number of matches) {
    const [address, title, summary] = window.zooSearch.pages[number];
    const link = document.createElement("a");
    link.href = top_ + address;
    const name = document.createElement("strong");
    name.textContent = title;
    const place = document.createElement("small");
    place.textContent = address.replace(".html", "");
    const text = document.createElement("span");
    text.textContent = summary;
    link.append(name, " ", place, text);
    panel.append(link);
  }
}

const query = byId("site-query");
query.addEventListener("focus", loadIndex);
query.addEventListener("input", () => loadIndex().then(() => show(query.value.trim())));
byId("site-search").addEventListener("submit", (event) => {
  event.preventDefault();
  loadIndex().then(() => {
    show(query.value.trim());
    byId("site-results").querySelector("a")?.click();
  });
});
document.addEventListener("keydown", (event) => {
  const links = [...byId("site-results").querySelectorAll("a")];
  const place = links.indexOf(document.activeElement);
  if (event.key === "/" && !event.target.matches("input")) {
    event.preventDefault();
    query.focus();
  } else if (event.key === "Escape") {
    byId("site-results").hidden = true;
    query.value = "";
  } else if (event.key === "ArrowDown" && links.length && (place >= 0 || event.target === query)) {
    event.preventDefault();
    links[Math.min(place + 1, links.length - 1)].focus();
  } else if (event.key === "ArrowUp" && place >= 0) {
    event.preventDefault();
    (links[place - 1] || query).focus();
  }
});
