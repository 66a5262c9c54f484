// Elements, and requests to the server.

/** Create an element. Properties that start with "on" are listeners; null children are left out. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "open") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Say something to screen readers. */
export function announce(text) {
  document.getElementById("live").textContent = text;
}

async function read(response) {
  if (response.status === 403) throw new Error("The server has been started again: open the address that it printed.");
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error);
  return answer;
}

async function send(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer; has 'zoo ui' ended?");
  }
}

export async function get(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return read(await send(query ? `${path}?${query}` : path));
}

export async function request(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return read(await send(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
}

export function count(number) {
  return number.toLocaleString("en-US");
}

export function bytes(number) {
  let size = number;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (size < 1000) return unit === "B" ? `${size} B` : `${size.toFixed(1)} ${unit}`;
    size /= 1000;
  }
  return `${size.toFixed(1)} TB`;
}

/** The text of a docstring, whose quoted parts are code. */
export function prose(text) {
  return text.split(/``(.+?)``|`(.+?)`/).map((part, index) => (part && index % 3 ? h("code", {}, part) : part ?? ""));
}

/** A button that copies a text. */
export function copyButton(label, text) {
  return h("button", { type: "button", class: "quiet", onclick: (event) => copy(event.currentTarget, text()) }, label);
}

export async function copy(button, text) {
  const label = button.dataset.label ?? button.textContent;
  button.dataset.label = label;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  announce(button.textContent === "Copied" ? "Copied" : "The browser does not allow this page to copy.");
  setTimeout(() => (button.textContent = label), 1500);
}

export function problem(error) {
  return h("p", { class: "problem", role: "alert" }, error.message ?? String(error));
}
