"""Every spec and recipe of the plugins in the form, and as YAML."""

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

# Returns the YAML of each spec, and the paths of its values that have no field.
SCRIPT = """async (specs) => {
  const [{ toYaml }, { SpecForm }, { SpecSchema, formatPath }, known] = await Promise.all([
    import("/static/yaml.js"), import("/static/form.js"), import("/static/schema.js"),
    import("/static/registry.js"),
  ]);
  const [{ arguments: texts }, loaded] = await Promise.all([known.registry(), known.schema()]);
  const schema = new SpecSchema(loaded, texts);
  function* paths(value, path) {
    if (path.length) yield formatPath(path);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key !== "type") yield* paths(inner, [...path, key]);
    }
  }
  return specs.map((data) => {
    const form = new SpecForm(schema, { onchange() {}, onslot() {} });
    form.show(data);
    const fields = [...form.element.querySelectorAll("[data-path]")];
    const shown = new Set(fields.map((field) => field.dataset.path));
    // A mapping without a schema is one field.
    const whole = fields.filter((field) => !field.querySelector("[data-path]"));
    const isInside = (path) => whole.some((field) => path.startsWith(`${field.dataset.path}.`));
    const missing = [...paths(data, [])].filter((path) => !shown.has(path) && !isInside(path));
    return [toYaml(data), missing];
  });
}"""


def test_every_spec_has_a_field_for_each_value_and_is_the_same_as_yaml(visit, server):
    page = visit().page
    page.set_default_timeout(60_000)
    page.goto(server.page("/components"))
    known = server.call("/api/specs")
    names = [("recipe" if each["is_recipe"] else "source", each["name"]) for each in known]
    specs = [server.call("/api/spec", {key: name})["data"] for key, name in names]
    assert len(specs) > 80
    for name, data, (text, missing) in zip(names, specs, page.evaluate(SCRIPT, specs), strict=True):
        assert missing == [], name
        assert server.call("/api/parse", {"text": text}) == {"ok": True, "data": data}, name
