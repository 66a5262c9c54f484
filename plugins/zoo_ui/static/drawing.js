// A field to draw on, white on black as the digits of MNIST are.

import { h } from "./dom.js";

const SHOWN = 280;

export class Drawing {
  /** @param size height and width of the image that is made. */
  constructor([height, width]) {
    this.width = width;
    this.height = height;
    this.scale = SHOWN / Math.max(height, width);
    this.canvas = h("canvas", { width: width * this.scale, height: height * this.scale, class: "drawing", role: "img", "aria-label": "Field to draw on" });
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.clear();
    this.canvas.addEventListener("pointerdown", (event) => this.start(event));
    this.canvas.addEventListener("pointermove", (event) => event.buttons && this.line(event));
  }

  clear() {
    this.isEmpty = true;
    this.loaded = null;
    this.context.fillStyle = "black";
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * this.canvas.width, ((event.clientY - box.top) / box.height) * this.canvas.height];
  }

  start(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.last = this.point(event);
    this.line(event);
  }

  line(event) {
    const next = this.point(event);
    Object.assign(this.context, { strokeStyle: "white", lineWidth: 2.2 * this.scale, lineCap: "round", lineJoin: "round" });
    this.context.beginPath();
    this.context.moveTo(...this.last);
    this.context.lineTo(...next);
    this.context.stroke();
    this.last = next;
    this.isEmpty = false;
    this.loaded = null;
  }

  /** Return the drawing as PNG in base64, in the size that the model takes. */
  content() {
    return this.loaded ?? this.resize(this.canvas);
  }

  resize(image) {
    const small = h("canvas", { width: this.width, height: this.height });
    const context = small.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, this.width, this.height);
    return small.toDataURL("image/png").split(",")[1];
  }

  /** Show a drawing that `content` returned, or another image; return the image. */
  async load(content) {
    const image = new Image();
    image.src = `data:image/png;base64,${content}`;
    await image.decode();
    this.context.drawImage(image, 0, 0, this.canvas.width, this.canvas.height);
    this.isEmpty = false;
    this.loaded = content;
    return image;
  }

  /**
   * Show the image of a file; leave out what is not an image, which the server reports.
   *
   * @param isFixed whether the model takes only one size.
   * @returns the image in this size and both sizes, or null if it is not resized.
   */
  async show(content, isFixed) {
    let image;
    try {
      image = await this.load(content);
    } catch {
      return null;
    }
    const [from, to] = [`${image.width} × ${image.height}`, `${this.width} × ${this.height}`];
    if (!isFixed || from === to) return null;
    this.loaded = this.resize(image);
    return { content: this.loaded, from, to };
  }
}
