// Plain data as YAML, in the form in which the specs of the zoo are written.

const PLAIN = /^[A-Za-z_][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+()-]+)*$/;
const RESERVED = /^(true|false|null|yes|no|on|off|nan|inf)$/i;
const WIDTH = 80;

function scalar(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  return PLAIN.test(value) && !RESERVED.test(value) ? value : JSON.stringify(value);
}

function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (value === null || typeof value !== "object") return scalar(value);
  return `{${Object.entries(value).map(([key, item]) => `${scalar(key)}: ${flow(item)}`).join(", ")}}`;
}

/** Whether a value has no structure inside of it, so that it fits in one line. */
function isFlat(value) {
  const inner = value === null || typeof value !== "object" ? [] : Object.values(value);
  return inner.every((item) => item === null || typeof item !== "object" || Object.keys(item).length === 0);
}

function block(value, indent) {
  const pad = " ".repeat(indent);
  const isList = Array.isArray(value);
  const entries = isList ? value.map((item) => ["-", item]) : Object.entries(value);
  return entries.map(([key, item]) => {
    const head = isList ? `${pad}-` : `${pad}${scalar(key)}:`;
    const short = `${head} ${flow(item)}`;
    const isEmpty = item === null || typeof item !== "object" || Object.keys(item).length === 0;
    if (isEmpty || (isFlat(item) && short.length <= WIDTH)) return short;
    const inner = block(item, indent + 2);
    return isList ? `${head} ${inner.slice(indent + 2)}` : `${head}\n${inner}`;
  }).join("\n");
}

export function toYaml(data) {
  return Object.keys(data).length === 0 ? "{}\n" : `${block(data, 0)}\n`;
}

export { flow };
