// A view of attention: mountView(element, data) shows the data of zoo.inspection.page.page_data.

const VIRIDIS = "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725"
  .split(" ").map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
const COLOURS = Array.from({ length: 256 }, (_, i) => {
  const at = (i / 255) * 16, low = Math.min(at | 0, 15);
  return VIRIDIS[low].map((c, k) => Math.round(c + (at - low) * (VIRIDIS[low + 1][k] - c)));
});
const PACKED = Uint32Array.from(COLOURS, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
const MAP_HEIGHT = 640, MAX_CELL = 44, MAX_LABEL = 150, MAX_NODES = 150, LINE = 13, ROTATED_LINE = 16;
const FONT = "12px system-ui, sans-serif", WHITE = "#fff", BLACK = "#000", PINK = "#ff5ea0";
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const { max, min, round, floor, ceil, abs, hypot, cos, sin, sqrt, PI } = Math;
const { assign } = Object;
const clamp = (x, low, high) => max(low, min(high, x));
const level = (t) => clamp(round(t * 255), 0, 255);
const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

function highest(values) {
  let top = 0;
  for (let i = 0; i < values.length; i++) if (values[i] > top) top = values[i];
  return top;
}

/** The packed colour of each value. */
function pack(values, colour) {
  const packed = new Uint32Array(values.length);
  for (let i = 0; i < values.length; i++) packed[i] = colour(values[i]);
  return packed;
}

/** An element with properties, attributes and children. */
function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function toBytes(base64) {
  return Uint8Array.fromBase64?.(base64) ?? Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

/** Let the page react. */
function pause() {
  return new Promise((done) => setTimeout(done));
}

/** The weights of a layer; quantised.py describes the format. */
async function decode({ shape, scale, offset, data }, quantum) {
  const stream = new Blob([toBytes(data)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const codes = new Uint8Array(buffer), content = new DataView(buffer);
  const S = shape.at(-1), R = shape.slice(0, -1).reduce((a, b) => a * b, 1), values = new Float32Array(R * S);
  let exact = R * (S + 5);
  for (let r = 0; r < R; r++) {
    if (r % 512 === 511) await pause();
    const q = quantum * 2 ** -codes[R * S + r], end = (r + 1) * S;
    let rest = content.getFloat32(R * (S + 1) + 4 * r, true), small = 0, multiples = 0;
    for (let i = r * S; i < end; i++) {
      const c = codes[i];
      if (c === 1) small++;
      else if (c === 255) {
        rest -= values[i] = content.getUint16(exact, true) / 65535;
        exact += 2;
      } else if (c) {
        multiples++;
        rest -= values[i] = (c - 1) * q;
      }
    }
    const low = small ? clamp(rest / small, 0, q / 2) : 0, shift = multiples ? (rest - low * small) / multiples : 0;
    for (let i = r * S; i < end; i++) {
      const c = codes[i];
      values[i] = offset + scale * (c === 1 ? low : c && c < 255 ? values[i] + shift : values[i]);
    }
  }
  return values;
}

/** The weights [T, S] of a head, or of the mean of all heads, and their maximum. */
function headOf({ values: all, T, S, H }, head) {
  const size = T * S, isMean = head === "mean";
  const values = isMean ? new Float32Array(size) : all.subarray(head * size, (head + 1) * size);
  if (isMean) all.forEach((value, i) => (values[i % size] += value / H));
  return { values, own: highest(values) };
}

/** The MathML element of a node of mathml.py. */
function math([tag, ...children]) {
  const element = document.createElementNS("http://www.w3.org/1998/Math/MathML", tag === "fence" ? "mo" : tag);
  if (tag === "mo") element.setAttribute("stretchy", "false");
  if (tag === "mspace") element.setAttribute("width", children[0]);
  else element.append(...children.map((child) => (Array.isArray(child) ? math(child) : child)));
  return element;
}

/** Three digits; below the error of a weight, only that and an estimate. */
function format(value, error) {
  if (value === 0 || abs(value) >= error) return String(+value.toPrecision(3));
  return `< ${error} (about ${+value.toPrecision(1)})`;
}

/** The label of a position; of the first and the last one, if they are pooled. */
function labelAt({ labels }, index, pool = 1) {
  const name = (i) => (labels[i].trim() || labels[i].replace(/\s/g, "␣") || "␀").replace(/\n/g, "↵");
  const first = index * pool, last = min(first + pool, labels.length) - 1;
  return last > first ? `${name(first)} … ${name(last)}` : name(first);
}

/** A text that is at most so wide, with an ellipsis at its end if it is longer. */
function shorten(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length).trimEnd()}…`;
}

/** The context of a canvas after a change of its size in CSS pixels. */
function resize(canvas, width, height) {
  const ratio = window.devicePixelRatio;
  assign(canvas, { width: round(width * ratio), height: round(height * ratio) });
  assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return assign(context, { font: FONT, textBaseline: "middle", imageSmoothingEnabled: false });
}

/** A canvas with one pixel for each packed colour. */
function pixels(packed, width, height) {
  const canvas = h("canvas", { width, height });
  canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(packed.buffer), width, height), 0, 0);
  return canvas;
}

/** Stroke a path in a colour with a dark edge, which is seen on any colour. */
function stroke(context, path, colour, lineWidth = 1.5) {
  for (const [width, strokeStyle] of [[lineWidth + 2, BLACK], [lineWidth, colour]]) {
    assign(context, { lineWidth: width, strokeStyle, lineJoin: "round" });
    context.stroke(path);
  }
}

function box(x, y, width, height) {
  const path = new Path2D();
  path.rect(x, y, width, height);
  return path;
}

/**
 * Show a view.
 *
 * options: heading, the level of the heading; state, what is shown first (layer, head, row, column);
 * onchange(state), called when that changes. Returns ready and complete, promises of the first picture
 * and of all thumbnails; select(change), which changes the state; and the state.
 */
export function mountView(element, data, options = {}) {
  const layers = data.layers.map((layer, index) => {
    const stored = data.weights[index], [H, T, S] = stored.shape.length === 3 ? stored.shape : [stored.shape[0], 1, stored.shape[1]];
    const [rows, columns, equations] = ["rows", "columns", "equations"].map((key) => data.shared[layer[key]]);
    return { ...layer, index, stored, H, T, S, rows, columns, equations, isPooled: max(...layer.pool) > 1 };
  });
  const state = { layer: data.first, head: 0, row: 0, column: 0, scale: "own", swap: null, zoom: 1, ...options.state };
  const parts = build(element, data, layers, options.heading || 1);
  let map = null, picture = null, current = null, width = 0;

  const load = async (layer) => (layer.values = await (layer.values ??= decode(layer.stored, data.quantum)));

  async function show() {
    state.layer = clamp(state.layer | 0, 0, layers.length - 1);
    const layer = layers[state.layer];
    await load(layer);
    // Another one may have been chosen meanwhile.
    if (layers[state.layer] !== layer) return;
    if (state.head !== "mean" || layer.H === 1) state.head = clamp(state.head | 0, 0, layer.H - 1);
    current = { ...headOf(layer, state.head), layer, zoom: state.zoom };
    current.high = state.scale === "own" ? current.own || 1 : max(1, layer.stored.scale);
    current.swap = state.swap ?? ["ctc", "memory"].includes(layer.kind);
    parts.update(state, current);
    width = parts.figure.clientWidth;
    map = (layer.kind === "edges" ? graphMap : heatMap)(parts, current, data);
    picture = imagePicture(parts, current, data);
    parts.overlay.title = "";
    point();
  }

  function point() {
    [state.row, state.column] = map.clamp(state.row | 0, state.column | 0);
    map.point(state.row, state.column);
    picture?.(state.row, state.column);
    parts.read(map.describe(state.row, state.column), map.largest(state.row));
    options.onchange?.(state);
  }

  const controller = {
    state,
    select(change) {
      const isCell = Object.keys(change).every((key) => key === "row" || key === "column");
      assign(state, change);
      return isCell ? point() : show();
    },
  };
  const redraw = () => current && show();
  parts.connect(controller, () => map, () => current);
  // The width is 0 while the view is hidden.
  new ResizeObserver(() => ![0, width].includes(parts.figure.clientWidth) && redraw()).observe(parts.figure);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  parts.theme.onchange = () => {
    document.documentElement.dataset.theme = parts.theme.value;
    redraw();
  };
  controller.ready = show().then(() => performance.mark("zoo-view-ready"));
  controller.complete = controller.ready.then(() => parts.drawThumbnails(load)).then(() => performance.mark("zoo-view-complete"));
  return controller;
}

/** Show the view of a page; the state is the fragment of its address. */
export function mountPage(element, script) {
  let timer = 0;
  window.view = mountView(element, JSON.parse(script.textContent), {
    state: Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
    onchange({ layer, head, row, column }) {
      clearTimeout(timer);
      // In a frame of a notebook, the address does not change.
      if (location.protocol === "about:") return;
      timer = setTimeout(() => history.replaceState(null, "", `#${new URLSearchParams({ layer, head, row, column })}`), 300);
    },
  });
}

// Maps have clamp, point, pick, move, describe and largest. With swapped axes, rows go from left to right.

function heatMap(parts, { layer, values, high, swap, zoom }, data) {
  const { T, S, pool } = layer, { ink, paper, mark } = parts.colours();
  const axes = [{ axis: layer.rows, size: pool[0], count: T }, { axis: layer.columns, size: pool[1], count: S }];
  const [left, top] = swap ? axes.toReversed() : axes, [down, across] = [left.count, top.count];
  const probe = resize(parts.map, 10, 10);
  const longest = ({ axis, size, count }) =>
    clamp(max(...times(count, (i) => probe.measureText(labelAt(axis, i, size)).width)), 60, MAX_LABEL);
  const x0 = ceil(longest(left)) + 10, y0 = ceil(longest(top) * 0.87) + 12, right = 64;
  const cell = min((parts.figure.clientWidth - x0 - right) / across, MAP_HEIGHT / down, MAX_CELL);
  const fitted = (cell >= 2 ? floor(cell) : max(cell, 1)) * zoom;
  const [cw, ch] = [across, down].map((n) => (n * fitted < 60 ? min(60 / n, MAX_CELL) : fitted));
  const width = x0 + across * cw + right, height = y0 + down * ch + 8;

  const packed = new Uint32Array(T * S);
  for (let i = 0; i < T * S; i++) packed[swap ? (i % S) * T + floor(i / S) : i] = PACKED[level(values[i] / high)];
  const context = resize(parts.map, width, height), overlay = resize(parts.overlay, width, height);
  context.drawImage(pixels(packed, across, down), x0, y0, across * cw, down * ch);
  context.fillStyle = ink;
  for (let i = 0; i < down; i += ceil(LINE / ch)) rowLabel(context, i);
  for (let j = 0; j < across; j += ceil(ROTATED_LINE / cw)) columnLabel(context, j);
  context.textAlign = "right";
  context.font = `italic ${FONT}`;
  context.fillText(`${top.axis.name} →`, x0 - 8, y0 - 31);
  context.fillText(`${left.axis.name} ↓`, x0 - 8, y0 - 15);
  if (layer.chosen) {
    const path = new Path2D();
    layer.chosen.forEach((column, row) => {
      const at = [row / pool[0], column / pool[1]], [i, j] = swap ? at.reverse() : at;
      path.lineTo(x0 + (floor(j) + 0.5) * cw, y0 + (floor(i) + 0.5) * ch);
    });
    stroke(context, path, WHITE, 2);
  }

  /** Fill a label, on a plate if it is that of the crosshair. */
  function label(target, text, x, y, align) {
    const size = min(target.measureText(text).width, MAX_LABEL);
    target.textAlign = align;
    if (target === overlay) {
      target.fillStyle = mark;
      target.fillRect(align === "right" ? x - size - 3 : x - 3, y - 8, size + 6, 16);
      target.fillStyle = paper;
    }
    target.fillText(text, x, y, MAX_LABEL);
  }

  function rowLabel(target, i) {
    label(target, labelAt(left.axis, i, left.size), x0 - 5, y0 + (i + 0.5) * ch, "right");
  }

  function columnLabel(target, j) {
    target.save();
    target.translate(x0 + (j + 0.5) * cw, y0 - 5);
    target.rotate(-PI / 3);
    label(target, labelAt(top.axis, j, top.size), 0, 0, "left");
    target.restore();
  }

  const place = ({ axis, size }, index) => {
    const first = index * size + 1, last = min(first + size - 1, axis.labels.length);
    const numbers = last > first ? `${first} to ${last}` : first;
    return `${axis.name} ${numbers} “${labelAt(axis, index, size)}”`;
  };
  /** The columns of the five largest weights of a row. */
  function best(row) {
    const found = [], w = values.subarray(row * S, (row + 1) * S);
    for (let j = 0; j < S; j++) {
      let k = found.length;
      while (k && w[found[k - 1]] < w[j]) k--;
      if (k < 5) found.splice(k, 0, j);
      found.length = min(found.length, 5);
    }
    return found;
  }

  return {
    clamp: (row, column) => [clamp(row, 0, T - 1), clamp(column, 0, S - 1)],
    point(row, column) {
      const [i, j] = swap ? [column, row] : [row, column], x = x0 + j * cw, y = y0 + i * ch;
      overlay.clearRect(0, 0, width, height);
      overlay.globalAlpha = 0.35;
      stroke(overlay, box(x0, y, across * cw, ch), WHITE, 1);
      stroke(overlay, box(x, y0, cw, down * ch), WHITE, 1);
      overlay.globalAlpha = 1;
      stroke(overlay, box(x - 1.5, y - 1.5, cw + 3, ch + 3), WHITE);
      rowLabel(overlay, i);
      columnLabel(overlay, j);
      // To read what is in sight is slow while the page changes; a small map is always in sight.
      if (zoom > 1 || cell < 2) parts.scrollTo(x, y, cw, ch);
    },
    pick(x, y) {
      const cell = [floor((y - y0) / ch), floor((x - x0) / cw)];
      if (min(...cell) < 0 || cell[0] >= down || cell[1] >= across) return null;
      return swap ? cell.reverse() : cell;
    },
    move(key, row, column) {
      const [a, b] = (swap ? STEPS[key]?.toReversed() : STEPS[key]) || [0, { Home: -S, End: S }[key]];
      return key === "m" ? [row, best(row)[0]] : b === undefined ? null : [row + a, column + b];
    },
    describe(row, column) {
      const value = format(values[row * S + column], data.tolerance);
      return [layer.isPooled ? `at most ${value}` : value, `${place(axes[0], row)} → ${place(axes[1], column)}`];
    },
    largest: (row) => best(row).map((j) => [place(axes[1], j), values[row * S + j]]),
  };
}

/** Draw the image that is attended to, with the weights of a row and the windows of glimpses. */
function imagePicture(parts, { layer, values }, data) {
  const grid = layer.columns.grid, image = data.images[layer.columns.name] || Object.values(data.images)[0];
  parts.picture.hidden = !grid || layer.isPooled || !(image || layer.kind === "glimpses");
  if (parts.picture.hidden) return null;
  const [gh, gw] = grid, cells = gh * gw, skip = layer.columns.labels.length - cells, [ih, iw] = image?.shape || grid;
  const scale = clamp(320 / max(ih, iw), 1, 16), width = iw * scale, height = ih * scale, cw = width / gw, ch = height / gh;
  const background = new Uint32Array(ih * iw).fill(0xff000000);
  if (image) toBytes(image.base64).forEach((c, i) => (background[(i / 3) | 0] |= c << (8 * (i % 3))));
  const base = pixels(background, iw, ih), context = resize(parts.image, width, height);
  const weights = (row) => values.subarray(row * layer.S + skip, row * layer.S + skip + cells);
  const position = (index) => [(index - skip) % gw, floor((index - skip) / gw)];
  const windows = layer.kind === "glimpses" ? times(layer.T, windowOf) : [];
  parts.pickImage = (x, y) => skip + clamp(floor(y / ch), 0, gh - 1) * gw + clamp(floor(x / cw), 0, gw - 1);

  /** The box of the weights of a glimpse that are at least a quarter of the largest one. */
  function windowOf(row) {
    const w = weights(row), peak = highest(w), found = [gw, gh, 0, 0];
    w.forEach((value, k) => {
      const x = k % gw, y = floor(k / gw), [left, top, right, bottom] = found;
      if (value >= peak / 4) assign(found, [min(left, x), min(top, y), max(right, x + 1), max(bottom, y + 1)]);
    });
    return found;
  }

  const outline = ([x, y], [right, bottom], colour) => stroke(context, box(x * cw, y * ch, (right - x) * cw, (bottom - y) * ch), colour);
  return (row, column) => {
    const w = weights(row), peak = highest(w) || 1;
    const packed = pack(w, (value) => ((round(clamp(value / peak, 0, 1) ** 0.7 * 210) << 24) | (PACKED[level(value / peak)] & 0xffffff)) >>> 0);
    context.drawImage(base, 0, 0, width, height);
    context.drawImage(pixels(packed, gw, gh), 0, 0, width, height);
    context.globalAlpha = 0.5;
    for (const [x, y, right, bottom] of windows) outline([x, y], [right, bottom], WHITE);
    context.globalAlpha = 1;
    if (windows.length) {
      const path = new Path2D(), [x, y, right, bottom] = windows[row];
      for (const each of windows.slice(0, row + 1)) path.lineTo(((each[0] + each[2]) / 2) * cw, ((each[1] + each[3]) / 2) * ch);
      stroke(context, path, PINK, 2);
      outline([x, y], [right, bottom], PINK);
    }
    const mark = (index, colour) => index >= skip && outline(position(index), position(index).map((k) => k + 1), colour);
    mark(column, WHITE);
    if (layer.kind === "self") mark(row, PINK);
  };
}

/** A graph: all nodes if they are few, otherwise a node with those that it attends to. */
function graphMap(parts, { layer, values, high }, data) {
  const [targets, sources] = data.edges, axis = layer.rows, nodes = axis.labels, incoming = nodes.map(() => []);
  targets.forEach((target, edge) => incoming[target].push(edge));
  for (const edges of incoming) edges.sort((a, b) => values[b] - values[a]);
  const width = clamp(parts.figure.clientWidth, 320, 900), height = min(MAP_HEIGHT, width * 0.75), { ink, paper, line, mark } = parts.colours();
  const context = resize(parts.map, width, height), overlay = resize(parts.overlay, width, height);
  const isWhole = nodes.length <= MAX_NODES, places = new Map();
  const widest = width < 600 ? 64 : 100;
  const put = (node, x, y) => places.set(node, [widest / 2 + 2 + x * (width - widest - 4), 30 + y * (height - 48)]);
  /** The label of a node, shortened to its largest width, and half of the width of its plate. */
  const plate = (node) => {
    const text = shorten(context, labelAt(axis, node), widest - 10);
    return [text, max(9, context.measureText(text).width / 2 + 4)];
  };
  if (isWhole) {
    layer.layout ??= layoutGraph(nodes.length, targets, sources);
    layer.layout.forEach(([x, y], node) => put(node, x, y));
    draw(context, targets.keys());
  }

  function draw(target, edges, node = -1) {
    const found = new Set(isWhole && target === context ? places.keys() : [node]);
    for (const edge of edges) {
      drawEdge(target, edge);
      found.add(sources[edge]);
    }
    for (const each of found) drawNode(target, each, each === node);
  }

  function drawEdge(target, edge) {
    const [[ax, ay], [bx, by]] = [sources[edge], targets[edge]].map((node) => places.get(node)), t = clamp(values[edge] / high, 0, 1);
    const path = new Path2D();
    path.moveTo(ax, ay);
    if (sources[edge] === targets[edge]) path.ellipse(ax, ay - 12, 8, 12, 0, PI / 2, 2.5 * PI);
    // Edges of both directions are bent to different sides.
    else path.quadraticCurveTo((ax + bx) / 2 + (ay - by) * 0.08, (ay + by) / 2 + (bx - ax) * 0.08, bx, by);
    for (const [extra, strokeStyle] of [[1.5, line], [0, `rgb(${COLOURS[level(t)]})`]]) {
      assign(target, { strokeStyle, lineWidth: 1 + 5 * t + extra });
      target.stroke(path);
    }
  }

  function drawNode(target, node, isMarked) {
    const [x, y] = places.get(node), [text, half] = plate(node), path = new Path2D();
    path.roundRect(x - half, y - 9, 2 * half, 18, 9);
    assign(target, { fillStyle: isMarked ? mark : paper, strokeStyle: ink, lineWidth: 1, textAlign: "center" });
    target.fill(path);
    target.stroke(path);
    target.fillStyle = isMarked ? paper : ink;
    target.fillText(text, x, y);
  }

  const find = (x, y) => [...places.keys()].find((node) => abs(places.get(node)[1] - y) < 14 && abs(places.get(node)[0] - x) < plate(node)[1] + 5);
  return {
    clamp(row, column) {
      const node = clamp(row, 0, nodes.length - 1);
      return [node, clamp(column, 0, max(0, incoming[node].length - 1))];
    },
    point(row, column) {
      const edges = incoming[row], source = sources[edges[column]] ?? row;
      overlay.clearRect(0, 0, width, height);
      if (isWhole) {
        assign(overlay, { globalAlpha: 0.7, fillStyle: paper });
        overlay.fillRect(0, 0, width, height);
        overlay.globalAlpha = 1;
      } else {
        const around = [...new Set(edges.map((edge) => sources[edge]))].filter((node) => node !== row);
        places.clear();
        context.clearRect(0, 0, width, height);
        put(row, 0.5, 0.5);
        around.forEach((node, i) => {
          const angle = (i / around.length - 0.25) * 2 * PI, ring = around.length > 30 && i % 2 ? 0.33 : 0.5;
          put(node, 0.5 + cos(angle) * ring, 0.5 + sin(angle) * ring);
        });
      }
      draw(overlay, edges, row);
      if (source === row) return;
      const [x, y] = places.get(source), half = plate(source)[1] + 5;
      stroke(overlay, box(x - half, y - 14, 2 * half, 28), mark);
    },
    pick(x, y, row) {
      const source = find(x, y), column = incoming[row].findIndex((edge) => sources[edge] === source);
      // The whole label, which may be shortened in the picture.
      parts.overlay.title = nodes[source] ?? "";
      return column < 0 ? null : [row, column];
    },
    pickRow: (x, y) => (find(x, y) === undefined ? null : [find(x, y), 0]),
    move(key, row, column) {
      const [a, b] = STEPS[key] || [0, { Home: -column, m: -column, End: nodes.length }[key]];
      return b === undefined ? null : [row + a, a ? 0 : column + b];
    },
    describe(row, column) {
      const edges = incoming[row], edge = edges[column], name = (node) => `${axis.name} “${nodes[node]}”`;
      if (edge === undefined) return ["—", `${name(row)} has no incoming edge`];
      return [format(values[edge], data.tolerance), `${name(row)} ← ${name(sources[edge])} (edge ${column + 1} of ${edges.length})`];
    },
    largest: (row) => incoming[row].slice(0, 5).map((edge) => [nodes[sources[edge]], values[edge]]),
  };
}

/** Places of nodes in the unit square: springs along edges, repulsion between all nodes. */
function layoutGraph(count, targets, sources) {
  const places = times(count, (i) => [cos(i * 2.4) * sqrt(i + 1), sin(i * 2.4) * sqrt(i + 1)]);
  for (let heat = 0.8; heat > 0; heat -= 0.004) {
    // A pull to the centre keeps separate components together.
    const moves = places.map(([x, y]) => [-x * 0.05, -y * 0.05]);
    const pull = (i, j, force) => {
      const d = [0, 1].map((k) => places[j][k] - places[i][k]), length = hypot(...d) + 1e-6, f = force(length) / length;
      for (const k of [0, 1]) (moves[i][k] += d[k] * f), (moves[j][k] -= d[k] * f);
    };
    for (let i = 0; i < count; i++) for (let j = 0; j < i; j++) pull(i, j, (d) => -1 / d);
    targets.forEach((target, edge) => target !== sources[edge] && pull(target, sources[edge], (d) => (d * d) / 2));
    places.forEach((place, i) => {
      const length = hypot(...moves[i]) + 1e-6;
      for (const k of [0, 1]) place[k] += (moves[i][k] * min(length, heat)) / length;
    });
  }
  const [x, y] = [0, 1].map((k) => {
    const all = places.map((place) => place[k]), low = min(...all), range = max(...all) - low || 1;
    return all.map((each) => (each - low) / range);
  });
  return x.map((each, i) => [each, y[i]]);
}

/** The elements of the view. */
function build(element, data, layers, heading) {
  const choice = (text, entries) => {
    const select = h("select", {}, ...entries.map(([value, name]) => h("option", { value }, name)));
    return [h("label", {}, text, select), select];
  };
  const button = (text, properties) => h("button", { type: "button", ...properties }, text);
  const note = (...children) => h("p", { className: "note" }, ...children);
  const [layerLabel, layerChoice] = choice("Layer", layers.map((layer, i) => [i, layer.path]));
  const [headLabel, headChoice] = choice("Head", []);
  const [scaleLabel, scaleChoice] = choice("Colours", [["own", "0 to maximum of the head"], ["one", "0 to 1"]]);
  const [themeLabel, theme] = choice("Theme", [["auto", "as the system"], ["light", "light"], ["dark", "dark"]]);
  const swap = button("Swap axes"), zoomOut = button("−", { ariaLabel: "Zoom out" }), zoomIn = button("+", { ariaLabel: "Zoom in" });
  const zooms = h("span", {}, zoomOut, zoomIn), map = h("canvas"), overlay = h("canvas"), image = h("canvas", { role: "img" });
  const frame = h("div", { className: "map", tabIndex: 0, role: "application" }, map, overlay), figure = h("div", {}, frame);
  const pictureNote = h("figcaption"), picture = h("figure", { className: "picture", hidden: true }, image, pictureNote);
  const bar = assign(pixels(PACKED.slice(), 256, 1), { className: "bar" });
  const high = h("span"), value = h("strong"), place = h("span"), largest = h("ol"), caption = h("div");
  const title = h(`h${heading + 1}`), kind = note(), rows = layers.map(buildThumbnails);
  const pooled = layers.filter((layer) => layer.isPooled).length, error = max(...layers.map((layer) => layer.stored.error));
  const json = (name, content) => h("details", {}, h("summary", {}, name), h("pre", { tabIndex: 0 }, JSON.stringify(content, null, 1)));
  theme.value = document.documentElement.dataset.theme || "auto";
  element.classList.add("zoo-view");
  element.replaceChildren(
    h("header", {}, h(`h${heading}`, {}, data.model), h("dl", {}, ...data.summary.flatMap(([role, text]) => [h("dt", {}, role), h("dd", {}, text)]))),
    h("div", { className: "controls" }, layerLabel, headLabel, scaleLabel, swap, zooms, themeLabel),
    h("div", { className: "columns" },
      h("section", { className: "grid", ariaLabel: "Layers and heads" }, ...rows.map((row) => row.element)),
      h("section", { className: "main", ariaLabel: "Weights" }, title, kind,
        h("p", { className: "readout", role: "status" }, value, " ", place), figure,
        h("div", { className: "scale" }, "0", bar, high),
        h("div", { className: "row" }, picture, h("div", {}, h(`h${heading + 2}`, {}, "Largest of this row"), largest)), caption)),
    note("Keys: arrows move the cell, m goes to the largest of the row, Page Up and Down change the head, [ and ] the layer, + and − the zoom. ",
      `Weights are stored in 8 bits: the largest error is ${error.toPrecision(2)}, sums of rows are exact. `,
      pooled ? `${pooled} of ${layers.length} layers are pooled: a cell is the maximum of several weights.` : ""),
    json("Provenance", data.provenance), json("Spec", data.spec));

  function update(state, { layer, high: top, swap: isSwapped }) {
    layerChoice.value = layer.index;
    headChoice.replaceChildren(...times(layer.H, (i) => h("option", { value: i }, i + 1)), ...(layer.H > 1 ? [h("option", { value: "mean" }, "mean")] : []));
    headChoice.value = state.head;
    scaleChoice.value = state.scale;
    swap.ariaPressed = isSwapped;
    swap.hidden = zooms.hidden = layer.kind === "edges";
    const head = state.head === "mean" ? "mean of the heads" : `head ${state.head + 1} of ${layer.H}`;
    title.textContent = `${layer.path}, ${head}`;
    const size = [layer.rows, layer.columns].map((axis) => axis.labels.length).join(" × ");
    const pooling = layer.isPooled ? `, pooled by ${layer.pool.join(" × ")}` : "";
    const numbers = layer.kind === "edges" && /^0( · |$)/.test(layer.rows.labels[0]) ? "; nodes have numbers from 0" : "";
    kind.textContent = `${data.kinds[layer.kind]}: ${layer.rows.name} × ${layer.columns.name}, ${size}${pooling}${numbers}`;
    high.textContent = +top.toPrecision(3);
    frame.ariaLabel = `Weights of ${title.textContent}. Arrow keys move the cell.`;
    image.ariaLabel = `Weights of a row of ${title.textContent} over the image`;
    pictureNote.textContent = layer.kind === "glimpses" ? "Windows of all steps, and the path to this one" : "Weights of this row";
    caption.replaceChildren(...layer.equations.map((equation) => buildEquation(equation, data.math)));
    rows.forEach(({ buttons }, i) => buttons.forEach((each, j) => {
      each.ariaPressed = i === layer.index && j === state.head;
      each.tabIndex = i === layer.index && j === (state.head | 0) ? 0 : -1;
    }));
  }

  function connect({ state, select }, getMap, getCurrent) {
    const numeric = (text) => (text === "mean" ? text : +text);
    const zoom = (factor) => select({ zoom: clamp(state.zoom * factor, 1, 16) });
    const go = (cell) => cell && (cell[0] !== state.row || cell[1] !== state.column) && select({ row: cell[0], column: cell[1] });
    const keys = {
      PageUp: () => select({ head: (state.head | 0) - 1 }), PageDown: () => select({ head: (state.head | 0) + 1 }),
      "[": () => select({ layer: state.layer - 1 }), "]": () => select({ layer: state.layer + 1 }),
      "+": () => zoom(2), "-": () => zoom(0.5),
    };
    layerChoice.onchange = () => select({ layer: +layerChoice.value });
    headChoice.onchange = () => select({ head: numeric(headChoice.value) });
    scaleChoice.onchange = () => select({ scale: scaleChoice.value });
    swap.onclick = () => select({ swap: !getCurrent().swap });
    zoomIn.onclick = keys["+"];
    zoomOut.onclick = keys["-"];
    frame.onkeydown = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const cell = getMap()?.move(event.key, state.row, state.column);
      if (!cell && !keys[event.key]) return;
      event.preventDefault();
      if (cell) go(getMap().clamp(...cell));
      else keys[event.key]();
    };
    overlay.onpointermove = ({ offsetX, offsetY }) => go(getMap()?.pick(offsetX, offsetY, state.row));
    overlay.onclick = ({ offsetX, offsetY }) => go(getMap()?.pickRow?.(offsetX, offsetY));
    image.onpointermove = ({ offsetX, offsetY }) => go([state.row, parts.pickImage(offsetX, offsetY)]);
    image.onclick = ({ offsetX, offsetY }) => getCurrent().layer.kind === "self" && go([parts.pickImage(offsetX, offsetY), state.column]);
    rows.forEach(({ buttons }, i) => buttons.forEach((each, j) => {
      each.onclick = () => select({ layer: i, head: j });
      each.onkeydown = (event) => {
        if (!STEPS[event.key]) return;
        event.preventDefault();
        const [a, b] = STEPS[event.key], next = rows[clamp(i + a, 0, rows.length - 1)].buttons;
        next[clamp(j + b, 0, next.length - 1)].focus();
        document.activeElement.click();
      };
    }));
  }

  const parts = {
    map, overlay, figure, picture, image, theme, update, connect,
    /** Draw the heads of the layers that are in sight, and of the others when they are. */
    drawThumbnails: (load) => new Promise((seen) => {
      let drawn = null;
      const observer = new IntersectionObserver((entries) => {
        for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
          observer.unobserve(target);
          drawn = rows.find((row) => row.element === target).draw(load, drawn);
        }
        seen(drawn);
      });
      for (const row of rows) observer.observe(row.element);
    }),
    colours() {
      const style = getComputedStyle(element);
      return Object.fromEntries(["ink", "paper", "line", "mark"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
    },
    read([text, where], weights) {
      const lines = weights.map(([label, weight]) => `${label} ${format(weight, data.tolerance)}`);
      value.textContent = text;
      place.textContent = where;
      while (largest.children.length > lines.length) largest.lastChild.remove();
      while (largest.children.length < lines.length) largest.append(h("li", {}, " "));
      lines.forEach((line, i) => (largest.children[i].firstChild.data = line));
    },
    scrollTo(x, y, width, height) {
      const [left, top, right, bottom] = [frame.scrollLeft, frame.scrollTop, frame.clientWidth, frame.clientHeight];
      if (x < left || x + width > left + right) frame.scrollLeft = x - right / 2;
      if (y < top || y + height > top + bottom) frame.scrollTop = y - bottom / 2;
    },
  };
  return parts;
}

function buildEquation({ kind, name, text, paper, parameters }, trees) {
  const values = Object.entries(parameters).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const formulas = trees[text].map((tree) => math(["math", tree]));
  for (const formula of formulas) formula.setAttribute("display", "block");
  return h("figure", {}, h("figcaption", {}, h("b", {}, name), ` (${kind})`), h("div", { className: "equation", title: text }, ...formulas),
    h("p", { className: "note" }, [paper, values.join(", ")].filter(Boolean).join(" · ")));
}

function buildThumbnails(layer) {
  const side = layer.kind === "edges" ? ceil(sqrt(layer.S)) : 0, [T, S] = side ? [side, side] : [layer.T, layer.S];
  const height = min(T, 64), width = min(S, 64), size = layer.H > 8 ? 40 : layer.H > 4 ? 52 : 72;
  const names = times(layer.H, (i) => `${layer.path}, head ${i + 1}`);
  const buttons = names.map((name) => h("button", { type: "button", title: name, ariaLabel: name, tabIndex: -1 }));
  for (const each of buttons) assign(each.style, { width: `${size + 4}px`, height: `${size + 4}px` });
  // One canvas behind all buttons, since each canvas of a page takes time in every frame.
  const strip = h("canvas");

  /** Draw the maximum of the weights of each pixel. */
  async function draw(load, before) {
    await before;
    await load(layer);
    const context = resize(strip, layer.H * (size + 7), size + 4);
    for (let head = 0; head < layer.H; head++) {
      await pause();
      const { values, own } = headOf(layer, head), peaks = new Float32Array(height * width);
      for (let k = 0, i = 0; i < T; i++) {
        const line = floor((i * height) / T) * width;
        for (let j = 0; j < S; j++, k++) {
          const at = line + floor((j * width) / S);
          if (values[k] > peaks[at]) peaks[at] = values[k];
        }
      }
      const canvas = pixels(pack(peaks, (value) => PACKED[level(value / (own || 1))]), width, height);
      context.drawImage(canvas, 2 + head * (size + 7), 2, size, size);
    }
  }
  return { buttons, draw, element: h("div", { className: "layer" }, h("span", { title: layer.path }, layer.path), h("div", {}, strip, ...buttons)) };
}
