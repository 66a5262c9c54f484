// The page of models: load one, run it on an input, and look at what it attends to.

import { h, count, copyButton, problem, request } from "./dom.js";
import { address, replace } from "./state.js";
import { registry } from "./registry.js";
import { Drawing } from "./drawing.js";
import { toYaml } from "./yaml.js";

const MAX_IN_ADDRESS = 6000;

export async function show(content, path, query, signal) {
  const known = await registry();
  const name = query.get("model");
  if (name) await showModel(content, name, query, signal);
  else showChoice(content, known);
}

function showChoice(content, known) {
  const input = h("input", { type: "text", id: "reference", placeholder: "model.safetensors, or ORG/NAME on the Hub", spellcheck: "false", autocomplete: "off" });
  const open = (event) => {
    event.preventDefault();
    if (input.value.trim()) location.hash = address(["models"], { model: input.value.trim() });
  };
  content.replaceChildren(
    h("h1", {}, "Models"),
    h("p", { class: "lead" }, "Load a model, run it, and look at its attention."),
    h("form", { class: "filters", onsubmit: open }, h("div", { class: "wide" }, h("label", { for: "reference" }, "File, folder or repository"), input), h("button", {}, "Load")),
    h("ul", { class: "cards" }, known.models.map((model) => h("li", {}, h("a", { class: "card", href: address(["models"], { model: model.name }) },
      h("span", { class: "name" }, model.name), h("span", { class: "tag" }, model.is_shipped ? "shipped" : "Hub"),
      h("span", { class: "summary" }, [model.results.map((each) => `${each.label ?? each.metric} ${each.value}`).join(", "), model.paper].filter(Boolean).join(" · ")))))),
  );
}

async function showModel(content, name, query, signal) {
  const isShipped = (await registry()).models.some((model) => model.name === name && model.is_shipped);
  const isOnHub = !isShipped && /^(hub:)?[\w-][\w.-]*\/[\w.-]+(@.+)?$/.test(name) && !name.endsWith(".safetensors");
  const message = isOnHub ? "Loading torch, and the model from the Hub: the first time, it is downloaded …" : "Loading torch and the model …";
  content.replaceChildren(h("h1", {}, name), h("p", { class: "muted", role: "status" }, message));
  const model = await request("/api/model", { model: name }, signal);
  if (!signal.aborted) await new ModelPage(content, name, model, query, signal).start();
}

/** A text for the shell in quotes. */
function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

class ModelPage {
  constructor(content, name, model, query, signal) {
    Object.assign(this, { name, model, query, signal, file: null });
    this.output = h("div", { class: "output", role: "status" });
    this.view = h("div", { class: "view" });
    this.yaml = h("pre", { tabindex: "0", class: "wrapped", id: "yaml" });
    this.input = this.makeInput();
    this.canRun = model.task !== "none";
    this.canAttend = this.canRun || model.input !== "array";
    content.replaceChildren(
      h("p", { class: "crumbs" }, h("a", { href: "#/models" }, "Models")),
      h("h1", {}, name, h("span", { class: "tag" }, `${count(model.parameters)} parameters`)),
      h("div", { class: "columns" },
        h("div", {}, this.canAttend
          ? h("form", { class: "run", onsubmit: (event) => this.submit(event) }, this.input,
            h("div", { class: "buttons" }, this.canRun ? h("button", {}, model.task === "generate" ? "Generate" : "Predict") : "",
              h("button", { type: this.canRun ? "button" : "submit", class: this.canRun ? "quiet" : null, onclick: (event) => this.attend(event) }, "Show attention")))
          : h("p", { class: "warning" }, "This model neither generates nor predicts from one input. Run it on its data with 'zoo eval'."),
        this.output),
        h("aside", {}, h("section", { class: "panel" }, h("div", { class: "heading" }, h("h2", {}, "This state"), copyButton("Copy YAML", () => this.yaml.textContent)), this.yaml),
          model.spec ? h("details", { class: "panel" }, h("summary", {}, "Spec"), h("pre", { tabindex: "0" }, toYaml(model.spec))) : "")),
      this.view);
  }

  /** Restore the drawing and the results that the address names. */
  async start() {
    if (this.drawing && this.query.has("png")) await this.drawing.load(this.query.get("png"));
    this.update();
    if (this.canRun && this.query.has("run")) await this.run();
    if (this.canAttend && this.query.has("attend")) await this.attend();
  }

  makeInput() {
    const { input, size, data } = this.model;
    if (data) return this.datasetInput(data, input === "graph");
    if (input === "image") return this.imageInput(size ?? [224, 224]);
    if (input === "audio") return this.fileInput("Sound", "audio/*,.wav,.flac");
    if (input === "array") return this.textInput("Token IDs, separated by spaces");
    return this.textInput(this.model.task === "generate" && this.model.input === "messages" ? "Message" : "Text");
  }

  textInput(label) {
    this.text = h("textarea", { id: "text", rows: "3", value: this.query.get("text") ?? "", oninput: () => this.update() });
    return h("div", {}, h("label", { for: "text" }, label), this.text);
  }

  fileInput(label, accept) {
    return this.chooser("file", label, accept, (file) => (this.file = file));
  }

  /** A field for a file; `keep` takes its name and content, or null. */
  chooser(id, label, accept, keep) {
    const input = h("input", { type: "file", id, accept, onchange: async () => {
      const [chosen] = input.files;
      keep(chosen ? { file: chosen.name, content: await base64(chosen) } : null);
      this.update();
    } });
    return h("div", {}, h("label", { for: id }, label), input);
  }

  /** An example of a dataset: its parameters as YAML, and files that replace those that they name. */
  datasetInput(data, isGraph) {
    const oninput = () => this.update();
    this.files = {};
    this.data = h("textarea", { id: "data", rows: "5", spellcheck: "false", value: this.query.get("data") ?? toYaml(data), oninput });
    this.example = h("input", { type: "number", id: "example", min: "1", value: this.query.get("example") ?? "1", oninput });
    const file = (key, label, accept) => this.chooser(`file-${key}`, label, accept, (chosen) => (chosen ? (this.files[key] = chosen) : delete this.files[key]));
    const tables = isGraph ? h("fieldset", {}, h("legend", {}, "Files of the graph, in place of those above"),
      file("nodes", "Table of nodes (.csv)", ".csv"), file("edges", "Table of edges (.csv)", ".csv"), file("file", "Or one file (.npz)", ".npz,.gz,.xz")) : "";
    return h("div", {}, h("label", { for: "data" }, "Dataset, as --data of zoo predict"), this.data, tables,
      h("label", { for: "example" }, "Number of the example"), this.example);
  }

  imageInput(size) {
    this.drawing = new Drawing(size);
    this.drawing.canvas.addEventListener("pointerup", () => this.update());
    const clear = h("button", { type: "button", class: "quiet", onclick: () => {
      this.drawing.clear();
      this.update();
    } }, "Clear");
    return h("div", { class: "drawing-input" }, h("div", {}, h("p", { class: "label" }, "Draw"), this.drawing.canvas, clear), this.fileInput("Or an image", "image/*"));
  }

  /** Return the input for the server. */
  value() {
    if (this.file) return this.file;
    if (this.data) return { data: this.data.value, files: this.files, example: +this.example.value || 1 };
    if (this.drawing) {
      if (this.drawing.isEmpty) throw new Error("Draw something, or choose a file.");
      return { file: "drawing.png", content: this.drawing.content() };
    }
    if (!this.text) throw new Error("Choose a file.");
    if (!this.text.value.trim()) throw new Error("Write a text.");
    return { text: this.text.value };
  }

  /** Show the state of the page as YAML and in the address. */
  update(action = null) {
    const text = this.text?.value, data = this.data?.value, example = this.data && this.example.value !== "1" ? this.example.value : "";
    const drawn = this.drawing && !this.drawing.isEmpty && !this.file ? this.drawing.content() : "";
    const png = drawn.length <= MAX_IN_ADDRESS ? drawn : "";
    replace(["models"], { model: this.name, text, data, example, png, [action ?? "idle"]: action ? "1" : "" });
    const verb = this.model.task === "predict" ? "predict" : "generate";
    const shown = this.data ? this.options() : quote(text ?? this.file?.file ?? "image.png");
    const state = { page: "models", model: this.name, ...(text ? { text } : {}), ...(data ? { data } : {}), ...(example ? { example } : {}), ...(png ? { png } : {}), ...(this.file ? { file: this.file.file } : {}) };
    const number = example ? ` --example ${example}` : "";
    this.yaml.textContent = `# zoo ${verb} ${this.name} ${shown}\n# zoo attend ${this.name} ${shown}${number} -o view.html\n${toYaml(state)}`;
  }

  /** The options of the command line that name the dataset: its lines that are "key: value". */
  options() {
    const lines = this.data.value.split("\n").map((line) => line.match(/^(\w+): *(\S.*)$/)).filter(Boolean);
    const chosen = Object.entries(this.files).map(([key, { file }]) => ["", key, file]);
    const named = chosen.length ? lines.filter(([, key]) => !["file", "nodes", "edges", "graphs"].includes(key)) : lines;
    return [...named, ...chosen].map(([, key, value]) => `--data ${quote(`${key}=${value}`)}`).join(" ");
  }

  submit(event) {
    event.preventDefault();
    if (this.canRun) this.run();
  }

  async run() {
    await this.work(this.output, "Running …", async () => {
      this.update("run");
      const answer = await request("/api/run", { model: this.name, input: this.value() }, this.signal);
      return [answer.warnings.map((message) => h("p", { class: "warning" }, message)), this.model.task === "generate" ? hypotheses(answer) : predictions(answer)];
    });
  }

  async attend(event) {
    event?.preventDefault();
    await this.work(this.view, "Computing the attention …", async () => {
      this.update("attend");
      const { view } = await request("/api/attend", { model: this.name, input: this.value() }, this.signal);
      return [h("h2", {}, "Attention"), h("iframe", { src: `/view/${view}`, title: "Attention", sandbox: "allow-scripts" })];
    });
  }

  async work(element, message, action) {
    element.replaceChildren(h("p", { class: "muted" }, message));
    try {
      element.replaceChildren(...(await action()).flat(Infinity));
    } catch (error) {
      if (error.name !== "AbortError") element.replaceChildren(problem(error));
    }
  }
}

function hypotheses({ hypotheses: found }) {
  return h("ol", { class: "hypotheses" }, found.map((each) => h("li", {}, h("span", { class: "result" }, each.text ?? each.tokens.join(" ")), h("span", { class: "muted" }, ` ${each.score.toFixed(3)}`))));
}

function bar(label, probability) {
  return h("li", {}, h("span", { class: "result" }, label), h("meter", { min: "0", max: "1", value: probability, "aria-label": `probability of ${label}` }), h("span", { class: "number" }, probability.toFixed(4)));
}

function predictions(answer) {
  if (answer.values) return h("p", { class: "result" }, answer.values.map((value) => value.toFixed(4)).join(" "));
  if (answer.top) return h("ul", { class: "bars" }, answer.top.map(([label, probability]) => bar(label, probability)));
  const { positions, total } = answer;
  const list = h("ul", { class: "bars" }, positions.map((each, i) => bar(`${each.name ?? i} ${each.label}`, each.probability)));
  const shown = positions.length > 12 ? h("div", { class: "long", tabindex: "0", role: "region", "aria-label": "Predictions" }, list) : list;
  return [shown, positions.length < total ? h("p", { class: "muted" }, `The first ${positions.length} of ${count(total)}; 'zoo predict' prints all.`) : ""];
}

async function base64(file) {
  const url = await new Promise((resolve, reject) => {
    const reader = Object.assign(new FileReader(), { onload: () => resolve(reader.result), onerror: reject });
    reader.readAsDataURL(file);
  });
  return url.split(",")[1];
}
