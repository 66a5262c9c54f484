// The JSON Schema of specs as fields of a form.

const SCALARS = ["boolean", "integer", "number", "string"];

/** ["model", "layers", 2] as "model.layers[2]", the form of paths in messages. */
export function formatPath(path) {
  return path.reduce((text, step) => (typeof step === "number" ? `${text}[${step}]` : text ? `${text}.${step}` : step), "");
}

export function valueAt(data, path) {
  return path.reduce((value, key) => (value === null || typeof value !== "object" ? undefined : value[key]), data);
}

/** Set the value at a path, or delete it if it is undefined. */
export function setAt(data, path, value) {
  const inner = path.slice(0, -1).reduce((at, key) => {
    if (at[key] === null || typeof at[key] !== "object") at[key] = typeof at[key] === "string" ? { type: at[key] } : {};
    return at[key];
  }, data);
  const key = path.at(-1);
  if (value !== undefined) inner[key] = value;
  else if (Array.isArray(inner)) inner.splice(key, 1);
  else delete inner[key];
}

export class SpecSchema {
  /**
   * @param schema the JSON Schema of specs.
   * @param texts the description of each parameter, by definition.
   */
  constructor(schema, texts) {
    this.definitions = schema.$defs;
    this.texts = texts;
    this.root = schema.else;
  }

  /** Return what kind of field a node of the schema is. */
  field(node) {
    if (node.$ref) return this.referenced(node.$ref.split("/").at(-1));
    if (node.anyOf) return this.union(node);
    const bounds = { minimum: node.minimum, maximum: node.maximum, default: node.default };
    if (node.enum || "const" in node) return { kind: "choice", choices: node.enum ?? [node.const], default: node.default };
    if (SCALARS.includes(node.type)) return { kind: node.type, ...bounds };
    if (node.type === "array" && node.items) {
      const items = this.field(node.items);
      if (items.kind === "slot" || items.kind === "object") return { kind: "list", items };
    }
    if (node.type === "object" && typeof node.additionalProperties === "object") {
      const items = this.field(node.additionalProperties);
      if (items.kind === "slot" || items.kind === "object") return { kind: "map", items };
    }
    return { kind: "data", default: node.default };
  }

  union(node) {
    const options = node.anyOf.filter((option) => option.type !== "null");
    const nullable = options.length < node.anyOf.length;
    if (options.length === 1) return { ...this.field(options[0]), default: node.default, nullable };
    return { kind: "data", default: node.default, nullable };
  }

  referenced(name) {
    const definition = this.definitions[name];
    const options = definition.anyOf ?? [definition];
    const own = options.find((option) => option.type === "object");
    const references = options.filter((option) => option.$ref).map((option) => option.$ref.split("/").at(-1));
    if (own && options.length === 2 && !references.length) {
      const shorthand = Object.keys(own.properties).find((key) => JSON.stringify(own.properties[key]) === JSON.stringify(options[1]));
      return { kind: "object", definition: name, shorthand };
    }
    if (own && !references.length) return { kind: "object", definition: name };
    const names = references.map((reference) => this.definitions[reference].properties.type.enum);
    const parts = references.map((reference, index) => {
      const [short, full] = names[index];
      const isUnique = names.filter(([other]) => other === short).length === 1;
      return { definition: reference, type: isUnique ? short : full, names: names[index], summary: this.definitions[reference].description };
    });
    if (own) parts.unshift({ definition: name, type: null, names: [], summary: "" });
    return { kind: "slot", definition: name, parts };
  }

  /** Return the part of a slot that a value names. */
  partOf(slot, value) {
    const type = typeof value === "string" ? value : value?.type;
    if (type === undefined) return slot.parts.find((part) => part.type === null) ?? null;
    return slot.parts.find((part) => part.names.includes(type)) ?? null;
  }

  /** Return the parameters of a definition as [name, node, is required, text]. */
  parameters(definition) {
    const found = this.definitions[definition];
    const own = found.properties ? found : found.anyOf.find((option) => option.type === "object");
    return this.entries(own, this.texts[definition]);
  }

  entries(node, texts = {}) {
    return Object.entries(node.properties)
      .filter(([name]) => name !== "type")
      .map(([name, inner]) => ({ name, node: inner, isRequired: (node.required ?? []).includes(name), text: texts[name] ?? "" }));
  }

  sections() {
    return this.entries(this.root, this.texts.sections);
  }

  /**
   * Return the values of a part to try in a slot, the first ones keep more of the present value: the
   * parameters of the same name, and for required ones the first of this name in the spec.
   */
  candidates(part, value, data) {
    const present = value !== null && typeof value === "object" ? value : {};
    const type = part.type === null ? {} : { type: part.type };
    const kept = {};
    const found = {};
    for (const { name, isRequired } of this.parameters(part.definition)) {
      if (name in present) kept[name] = present[name];
      else if (isRequired) {
        const other = firstNamed(data.model, name);
        if (other !== undefined) found[name] = other;
      }
    }
    const tries = [{ ...type, ...kept, ...found }, { ...type, ...found }, { ...type }];
    const texts = tries.map((each) => JSON.stringify(each));
    return tries.filter((_, index) => texts.indexOf(texts[index]) === index);
  }
}

function firstNamed(data, name) {
  if (data === null || typeof data !== "object") return undefined;
  if (!Array.isArray(data) && name in data) return data[name];
  for (const inner of Object.values(data)) {
    const found = firstNamed(inner, name);
    if (found !== undefined) return found;
  }
  return undefined;
}
