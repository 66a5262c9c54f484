"""Pages in a real browser: values under the pointer, keyboard, themes, policy, accessibility."""

import functools
import http.server
import itertools
import math
import re
import threading
from dataclasses import replace

import pytest
import torch
from view_kit import VIEWS, graph_view, image_view, long_view, step_view, text_view

from zoo_inspect.page import page_text, write_page
from zoo_inspect.view import Axis

VIEWPORT = {"width": 1280, "height": 900}


@pytest.fixture
def open_view(visit, tmp_path):
    """A function that opens the page of a view and waits until all of it is drawn."""

    def open_page(view, theme="light", fragment=""):
        path = tmp_path / "page.html"
        write_page(view, path)
        tab = visit(theme, viewport=VIEWPORT)
        tab.page.goto(path.as_uri() + fragment)
        tab.page.evaluate("view.complete")
        assert tab.requests == [path.as_uri()]
        return tab

    return open_page


def choice(tab, name):
    return tab.page.get_by_role("combobox", name=name, exact=True)


def state(tab):
    keys = ("layer", "head", "row", "column")
    return tuple(tab.page.evaluate("view.state")[key] for key in keys)


def shown(tab):
    """The value that is read out; the bound for a small one."""
    return float(re.search(r"[\d.]+(e-\d+)?", tab.page.inner_text(".readout strong"))[0])


def find_map(tab):
    """The place of the cells in the window, once the page no longer moves its canvas."""
    tab.page.evaluate(
        """async () => {
          const map = document.querySelector(".map canvas");
          const place = () => JSON.stringify([map.width, map.height, map.getBoundingClientRect()]);
          for (let old = ""; old !== place();) {
            old = place();
            await new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)));
          }
        }"""
    )
    return _measure_map(tab)


def _measure_map(tab):
    """The left, top, right and bottom of the cells in the window, found by their colours."""
    left, top, right, bottom = tab.page.evaluate(
        """() => {
          const map = document.querySelector(".map canvas"), {width, height} = map;
          const data = map.getContext("2d").getImageData(0, 0, width, height).data;
          const isCell = (x, y) => data[4 * (y * width + x) + 3] === 255;
          let right = width - 1, bottom = height - 1;
          while (!isCell((width / 2) | 0, bottom)) bottom--;
          while (!isCell(right, bottom - 2)) right--;
          let left = right, top = bottom;
          while (isCell(left - 1, bottom - 2)) left--;
          while (isCell(right - 2, top - 1)) top--;
          return [left, top, right + 1, bottom + 1];
        }"""
    )
    place = tab.page.locator(".map canvas").first.bounding_box()
    x, y = place["x"], place["y"]
    return x + left, y + top, x + right, y + bottom


def hover(tab, box, row, column, shape):
    """Move the pointer to a cell."""
    left, top, right, bottom = box
    x = left + (column + 0.5) * (right - left) / shape[1]
    y = top + (row + 0.5) * (bottom - top) / shape[0]
    tab.page.mouse.move(x, y)


def test_the_value_under_the_pointer_is_that_of_the_tensor(open_view):
    view = text_view()
    tab = open_view(view, fragment="#layer=1&head=2")
    weights, box = view.layers[1].weights[2], find_map(tab)
    for row in range(4):
        for column in range(5):
            hover(tab, box, row, column, (4, 5))
            assert state(tab) == (1, 2, row, column)
            expected = max(weights[row, column].item(), 0.002)
            assert shown(tab) == pytest.approx(expected, abs=0.0025)
    hover(tab, box, 0, 1, (4, 5))
    assert "output 1 “The” → source 2 “▁casa”" in tab.page.inner_text(".readout")
    assert (
        "</script><b>&" in tab.page.inner_text(".main") or tab.page.keyboard.press("Home") is None
    )


def test_the_last_layer_to_an_input_is_shown_first(open_view):
    tab = open_view(text_view(layers=3))
    assert "decoder.cross, head 1 of 3" in tab.page.inner_text(".main")


def test_labels_of_columns_are_apart(visit, tmp_path):
    """Lines of labels that are rotated by 60 degrees have the distance of lines of text."""
    write_page(long_view(layers=1, heads=1, tokens=300), tmp_path / "page.html")
    tab = visit("light", viewport=VIEWPORT)
    tab.page.add_init_script(
        """window.places = [];
        const fill = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (...values) {
          const {b, e} = this.getTransform();
          if (b) places.push(e / devicePixelRatio);
          return fill.apply(this, values);
        };"""
    )
    tab.page.goto((tmp_path / "page.html").as_uri())
    tab.page.evaluate("view.complete")
    places = sorted(set(tab.page.evaluate("places")))
    assert len(places) > 20
    assert min(b - a for a, b in itertools.pairwise(places)) * math.sin(math.pi / 3) >= 13


def test_decoded_weights_are_those_of_python(open_view, tmp_path):
    """The script decodes every weight as `read_page` does."""
    from zoo_inspect.page import read_page

    tab = open_view(long_view(layers=2, heads=3, tokens=40))
    _, weights = read_page(tmp_path / "page.html")
    for index, expected in enumerate(weights):
        for head in range(3):
            tab.page.evaluate(f"view.select({{layer: {index}, head: {head}}})")
            found = tab.page.evaluate(
                """async () => {
                  const values = [];
                  for (let cell = 0; cell < 160; cell++) {
                    view.select({row: 13 * Math.floor(cell / 40), column: cell % 40});
                    values.push(document.querySelector(".readout strong").textContent);
                  }
                  return values;
                }"""
            )
            values = [float(re.findall(r"[\d.]+(?:e-\d+)?", text)[-1]) for text in found]
            decoded = expected[head, ::13].flatten()
            # Three digits are shown, and one of those below the error.
            is_small = decoded < 0.002
            error = (torch.tensor(values) - decoded).abs() / decoded.clamp(min=1e-9)
            assert (error < torch.where(is_small, 0.51, 0.006)).all()


def test_everything_by_keyboard(open_view):
    tab = open_view(text_view(), fragment="#layer=0")
    page = tab.page
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "map":
            break
    for key, expected in [
        ("ArrowDown", (0, 0, 1, 0)),
        ("ArrowRight", (0, 0, 1, 1)),
        ("End", (0, 0, 1, 4)),
        ("ArrowRight", (0, 0, 1, 4)),
        ("ArrowUp", (0, 0, 0, 4)),
        ("Home", (0, 0, 0, 0)),
        ("PageDown", (0, 1, 0, 0)),
        ("PageDown", (0, 2, 0, 0)),
        ("PageDown", (0, 2, 0, 0)),
        ("PageUp", (0, 1, 0, 0)),
        ("]", (1, 1, 0, 0)),
        ("[", (0, 1, 0, 0)),
    ]:
        page.keyboard.press(key)
        page.wait_for_function(
            f"{list(expected[:2])}.join() === [view.state.layer, view.state.head].join()"
        )
        assert state(tab) == expected
    page.keyboard.press("m")
    best = text_view().layers[0].weights[1, 0].argmax().item()
    assert state(tab) == (0, 1, 0, best)
    assert page.get_attribute(".readout", "role") == "status"


def test_thumbnails_by_keyboard(open_view):
    tab = open_view(text_view(), fragment="#layer=0")
    page = tab.page
    chosen = page.locator(".layer button[aria-pressed=true]")
    chosen.focus()
    for key, expected in [
        ("ArrowRight", (0, 1)),
        ("ArrowDown", (1, 1)),
        ("ArrowLeft", (1, 0)),
        ("ArrowUp", (0, 0)),
    ]:
        page.keyboard.press(key)
        page.wait_for_function(
            f"{list(expected)}.join() === [view.state.layer, view.state.head].join()"
        )
        name = f"{text_view().layers[expected[0]].path}, head {expected[1] + 1}"
        assert chosen.get_attribute("aria-label") == name
        assert page.evaluate("document.activeElement.ariaLabel") == name
    assert page.locator(".layer button[tabindex='0']").count() == 1


def test_controls(open_view):
    tab = open_view(text_view())
    page = tab.page
    choice(tab, "Layer").select_option("decoder.cross")
    choice(tab, "Head").select_option("mean")
    page.wait_for_function("document.querySelector('h2').textContent.includes('mean')")
    expected = text_view().layers[1].weights.mean(0)
    assert shown(tab) == pytest.approx(expected[0, 0].item(), abs=0.0025)
    assert float(page.inner_text(".scale span")) == pytest.approx(expected.max().item(), abs=0.003)
    choice(tab, "Colours").select_option("one")
    page.wait_for_function("document.querySelector('.scale span').textContent === '1'")
    swap = page.get_by_role("button", name="Swap axes")
    swap.click()
    page.wait_for_function("view.state.swap === true")
    hover(tab, find_map(tab), 4, 3, (5, 4))
    assert state(tab)[2:] == (3, 4)
    assert swap.get_attribute("aria-pressed") == "true"
    width = page.locator(".map canvas").first.bounding_box()["width"]
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function(f"document.querySelector('.map canvas').clientWidth > {width}")


def background(tab):
    return tab.page.evaluate(
        "getComputedStyle(document.querySelector('.zoo-view')).backgroundColor"
    )


def test_themes(open_view):
    tab = open_view(text_view(), "dark")
    dark = background(tab)
    for theme in ("light", "dark", "auto"):
        choice(tab, "Theme").select_option(theme)
        assert (background(tab) == dark) == (theme != "light")
    tab.page.emulate_media(color_scheme="light")
    assert background(tab) != dark


@pytest.mark.parametrize(
    ("name", "theme"),
    [
        ("text", "light"),
        ("text", "dark"),
        ("image", "dark"),
        ("graph", "light"),
        ("large graph", "dark"),
        ("steps", "light"),
    ],
)
def test_pages_are_accessible(open_view, name, theme):
    tab = open_view(VIEWS[name](), theme, "#row=1&column=1")
    for summary in tab.page.locator("summary").all():
        summary.click()
    assert tab.violations() == []
    tab.screenshot(f"page-{name.replace(' ', '-')}-{theme}")


def test_weights_are_over_the_image(open_view):
    view = image_view()
    tab = open_view(view)
    page = tab.page
    box = page.locator(".picture canvas").bounding_box()
    # A grid of 2 x 3 patches after a class token: the patch of row 1, column 2 is position 6.
    page.mouse.move(box["x"] + box["width"] * 5 / 6, box["y"] + box["height"] * 3 / 4)
    assert state(tab) == (0, 0, 0, 6)
    assert shown(tab) == pytest.approx(view.layers[0].weights[0, 0, 6].item(), abs=0.0025)
    page.locator(".picture canvas").click()
    assert state(tab)[2] in (2, 5)  # the patch in the middle attends now
    choice(tab, "Layer").select_option("retina")
    page.wait_for_function("document.querySelector('.picture').innerText.includes('Windows')")


def test_edges_of_a_graph(open_view):
    view = graph_view()
    tab = open_view(view)
    page = tab.page
    page.locator(".map").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    targets, sources = view.edges
    edges = (targets == 1).nonzero().flatten()
    weights, order = view.layers[0].weights[0, edges].sort(descending=True)
    assert shown(tab) == pytest.approx(weights[1].item(), abs=0.0025)
    assert "nodes have numbers from 0" in page.inner_text(".main")
    assert f"node “1” ← node “{sources[edges[order[1]]]}”" in page.inner_text(".readout")


def test_long_names_of_nodes_are_shortened_and_shown_under_the_pointer(open_view):
    names = [f"A study of the attention of graph networks {i}" for i in range(9)]
    axis = Axis("node", names)
    view = graph_view()
    layer = replace(view.layers[0], rows=axis, columns=axis)
    tab = open_view(replace(view, layers=[layer]), fragment="#row=4")
    page = tab.page
    # Borders stay empty: no plate of a node is cut off.
    assert page.evaluate(
        """() => {
          const map = document.querySelector(".map canvas"), {width, height} = map;
          const data = map.getContext("2d").getImageData(0, 0, width, height).data;
          return [...Array(height).keys()].every((y) =>
            data[4 * y * width + 3] === 0 && data[4 * (y * width + width - 1) + 3] === 0);
        }"""
    )
    shown = page.evaluate(
        """() => {
          const map = document.querySelectorAll(".map canvas")[1], shown = new Set();
          const {x, y, width, height} = map.getBoundingClientRect();
          for (let right = 10; right < width; right += 40)
            for (let down = 6; down < height; down += 24) {
              const at = {clientX: x + right, clientY: y + down};
              map.dispatchEvent(new PointerEvent("pointermove", at));
              shown.add(map.title);
            }
          return [...shown];
        }"""
    )
    assert set(shown) == {"", *names}
    assert "numbers from 0" not in page.inner_text(".main")


def test_long_inputs_say_that_they_are_pooled(open_view, monkeypatch):
    monkeypatch.setattr("zoo_inspect.page.MAX_BYTES", 30_000)
    view = long_view(layers=2, heads=1, tokens=300)
    tab = open_view(view, fragment="#layer=0&row=99&column=3")
    assert "pooled by 3 × 3" in tab.page.inner_text(".main")
    text = tab.page.inner_text(".readout")
    assert "source 298 to 300 “token297 … token299” → source 10 to 12" in text
    expected = view.layers[0].weights[0, 297:, 9:12].max().item()
    assert shown(tab) == pytest.approx(max(expected, 0.002), abs=0.0025)
    assert "2 of 2 layers are pooled" in tab.page.inner_text("main")


def test_the_error_of_the_weights_is_in_the_page(open_view):
    tab = open_view(text_view())
    error = float(re.search(r"largest error is ([\d.]+)", tab.page.inner_text("main"))[1])
    assert 0 < error <= 0.002


def test_time_goes_from_left_to_right(open_view):
    tab = open_view(step_view())
    hover(tab, find_map(tab), 2, 10, (4, 30))
    assert state(tab)[2:] == (10, 2)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves a page under the strictest policy, with the hashes that the page itself has."""

    def __init__(self, text, *arguments):
        self.text = text
        super().__init__(*arguments)

    def do_GET(self):
        policy = re.search(r'content="(default-src .*?)"', self.text)[1]
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *arguments):
        pass


def test_served_under_the_policy_of_the_page(visit):
    handler = functools.partial(Handler, page_text(text_view()))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            tab = visit("light")
            tab.page.goto(f"http://127.0.0.1:{server.server_port}/")
            tab.page.evaluate("view.complete")
            assert "tiny" in tab.page.inner_text("h1")
        finally:
            server.shutdown()
            thread.join()


def test_in_the_frame_of_a_notebook(visit, tmp_path):
    import html

    frame = f'<iframe srcdoc="{html.escape(page_text(text_view()), quote=True)}"></iframe>'
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>x</title>{frame}")
    tab = visit("light")
    tab.page.goto((tmp_path / "notebook.html").as_uri())
    tab.page.frame_locator("iframe").locator(".readout strong").wait_for()
