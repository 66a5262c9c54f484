// What the server knows: components, specs and models at once, the schema when torch is loaded.

import { get } from "./dom.js";

const kept = new Map();

function once(path) {
  if (!kept.has(path)) {
    const answer = get(path);
    answer.catch(() => kept.delete(path));
    kept.set(path, answer);
  }
  return kept.get(path);
}

export const registry = () => once("/api/registry");
export const specs = () => once("/api/specs");
export const schema = () => once("/api/schema");
