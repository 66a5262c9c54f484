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
  content.replaceChildren(h("h1", {}, name), h("p", { class: "muted", role: "status" }, "Loading torch and the model …"));
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
    this.canRun = model.task !== "none" && this.input !== null;
    content.replaceChildren(
      h("p", { class: "crumbs" }, h("a", { href: "#/models" }, "Models")),
      h("h1", {}, name, h("span", { class: "tag" }, `${count(model.parameters)} parameters`)),
      h("div", { class: "columns" },
        h("div", {}, this.canRun
          ? h("form", { class: "run", onsubmit: (event) => this.submit(event) }, this.input,
            h("div", { class: "buttons" }, h("button", {}, model.task === "generate" ? "Generate" : "Predict"),
              h("button", { type: "button", class: "quiet", onclick: () => this.attend() }, "Show attention")))
          : h("p", { class: "warning" }, "This model does not take a text, an image or a sound. Run it on its data with 'zoo predict' or 'zoo eval'."),
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
    if (this.canRun && this.query.has("attend")) await this.attend();
  }

  makeInput() {
    const { input, size } = this.model;
    if (input === "image") return this.imageInput(size ?? [224, 224]);
    if (input === "audio") return this.fileInput("Sound", "audio/*,.wav,.flac");
    if (input === "array") return this.model.task === "generate" ? this.textInput("Token IDs, separated by spaces") : null;
    return this.textInput(this.model.task === "generate" && this.model.input === "messages" ? "Message" : "Text");
  }

  textInput(label) {
    this.text = h("textarea", { id: "text", rows: "3", value: this.query.get("text") ?? "", oninput: () => this.update() });
    return h("div", {}, h("label", { for: "text" }, label), this.text);
  }

  fileInput(label, accept) {
    const input = h("input", { type: "file", id: "file", accept, onchange: async () => {
      const [chosen] = input.files;
      this.file = chosen ? { file: chosen.name, content: await base64(chosen) } : null;
      this.update();
    } });
    return h("div", {}, h("label", { for: "file" }, label), input);
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
    const text = this.text?.value;
    const drawn = this.drawing && !this.drawing.isEmpty && !this.file ? this.drawing.content() : "";
    const png = drawn.length <= MAX_IN_ADDRESS ? drawn : "";
    replace(["models"], { model: this.name, text, png, [action ?? "idle"]: action ? "1" : "" });
    const verb = this.model.task === "predict" ? "predict" : "generate";
    const shown = text !== undefined ? quote(text) : quote(this.file?.file ?? "image.png");
    const state = { page: "models", model: this.name, ...(text ? { text } : {}), ...(png ? { png } : {}), ...(this.file ? { file: this.file.file } : {}) };
    this.yaml.textContent = `# zoo ${verb} ${this.name} ${shown}\n# zoo attend ${this.name} ${shown} -o view.html\n${toYaml(state)}`;
  }

  submit(event) {
    event.preventDefault();
    this.run();
  }

  async run() {
    await this.work(this.output, "Running …", async () => {
      this.update("run");
      const answer = await request("/api/run", { model: this.name, input: this.value() }, this.signal);
      return [answer.warnings.map((message) => h("p", { class: "warning" }, message)), this.model.task === "generate" ? hypotheses(answer) : predictions(answer)];
    });
  }

  async attend() {
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
  return h("ul", { class: "bars" }, answer.positions.map((each) => bar(`${each.name ?? ""} ${each.label}`, each.probability)));
}

async function base64(file) {
  const url = await new Promise((resolve, reject) => {
    const reader = Object.assign(new FileReader(), { onload: () => resolve(reader.result), onerror: reject });
    reader.readAsDataURL(file);
  });
  return url.split(",")[1];
}
