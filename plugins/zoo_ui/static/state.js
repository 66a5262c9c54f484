// The state of a page in its address: everything after "#".

/** The error of an address that names no page. */
export function noPage(path) {
  return new Error(`There is no page '${path.join("/")}'; the pages are components, build and models.`);
}

/** Return the page and its parameters. */
export function read() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

/** Decode a part of an address; one that is not valid is left as it is. */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function address(path, query = {}) {
  const set = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(set).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Change the address without a new entry in the history, and without showing the page again. */
export function replace(path, query) {
  history.replaceState(null, "", address(path, query));
}

async function transform(bytes, stream) {
  const response = new Response(new Blob([bytes]).stream().pipeThrough(stream));
  return new Uint8Array(await response.arrayBuffer());
}

/** Return data as a short text for an address. */
export async function pack(data) {
  const bytes = await transform(new TextEncoder().encode(JSON.stringify(data)), new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** Return the data that a text of `pack` holds. */
export async function unpack(text) {
  try {
    const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const data = JSON.parse(new TextDecoder().decode(await transform(bytes, new DecompressionStream("deflate-raw"))));
    if (data !== null && typeof data === "object" && !Array.isArray(data)) return data;
  } catch {} // each step has an error of its own, which says nothing about the address
  throw new Error("The spec in this address cannot be read: the address is incomplete or has been changed.");
}
