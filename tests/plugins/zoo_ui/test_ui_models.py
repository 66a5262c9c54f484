"""Running models and looking at their attention in a real browser."""

import re
from urllib.parse import quote

import pytest
from hub_kit import NAME, environment, zoo as command
from hub_server import TOKEN, Hub
from ui_kit import UiServer

import zoo

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("PIL", reason="Pillow is not installed")


@pytest.fixture
def open_model(visit, server):
    """A function that opens the page of a model and waits until it is loaded."""

    def open_page(state, selector=".run"):
        tab = visit(viewport={"width": 1280, "height": 860})
        tab.page.set_default_timeout(60_000)
        tab.page.goto(server.page(f"/models?{state}"))
        tab.page.wait_for_selector(selector)
        return tab

    return open_page


def test_a_text_is_run_and_the_value_of_a_cell_is_read(open_model):
    tab = open_model("model=g2p-bahdanau")
    page = tab.page
    page.get_by_label("Text").fill("attention")
    page.get_by_role("button", name="Generate").click()
    sync_api.expect(page.locator(".hypotheses li").first).to_contain_text("AH T EH N SH AH N")
    page.get_by_role("button", name="Show attention").click()
    frame = page.frame_locator("iframe")
    readout = frame.locator(".readout")
    readout.wait_for()
    assert "run=1&attend=1" in page.url
    sync_api.expect(frame.locator("ol li").first).to_contain_text(re.compile(r"source \d+ “\w”"))
    cells = frame.locator(".map")
    page.set_viewport_size({"width": 1280, "height": 1500})
    box = cells.bounding_box()
    (layer,) = zoo.attend("g2p-bahdanau", "attention").layers
    for across, down in ((0.25, 0.4), (0.35, 0.7)):
        before = readout.inner_text()
        cells.hover(position={"x": box["width"] * across, "y": box["height"] * down})
        sync_api.expect(readout).not_to_have_text(before)
        row, column = _cell(readout)
        assert row > 1
        assert column > 1
        shown = float(re.search(r"0[\d.]*|1", readout.inner_text())[0])
        assert shown == pytest.approx(layer.weights[0, row - 1, column - 1].item(), abs=0.002)
    cells.focus()
    page.keyboard.press("ArrowLeft")
    sync_api.expect(readout).to_contain_text(f"source {column - 1} ")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        tab.screenshot(f"model-text-{theme}")
        assert tab.violations() == []


def _cell(readout):
    """The row and the column that the page names."""
    return map(int, re.search(r"output (\d+) .* source (\d+) ", readout.inner_text()).groups())


def test_a_drawing_is_classified_and_is_part_of_the_address(open_model):
    tab = open_model("model=ram-mnist", "canvas.drawing")
    page = tab.page
    box = page.locator("canvas.drawing").bounding_box()
    page.mouse.move(box["x"] + 140, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 138, box["y"] + 230, steps=8)
    page.mouse.up()
    page.get_by_role("button", name="Predict").click()
    sync_api.expect(page.locator(".bars li").first).to_contain_text("1")
    tab.screenshot("model-drawing")
    page.set_viewport_size({"width": 800, "height": 860})
    tab.screenshot("model-drawing-800")
    assert tab.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 800
    page.reload()
    sync_api.expect(page.locator(".bars li").first).to_contain_text("1")


def test_the_last_image_or_drawing_is_the_input(open_model, tmp_path):
    from PIL import Image

    tab = open_model("model=ram-mnist", "canvas.drawing")
    page = tab.page
    (tmp_path / "not-image.png").write_text("text")
    Image.new("L", (64, 48)).save(tmp_path / "large.png")
    page.get_by_label("Or an image").set_input_files(tmp_path / "not-image.png")
    page.get_by_role("button", name="Predict").click()
    problem = page.locator(".output .problem")
    sync_api.expect(problem).to_contain_text("not-image.png")
    assert "/" not in problem.inner_text()
    page.get_by_label("Or an image").set_input_files(tmp_path / "large.png")
    page.get_by_text("Resized from 64 × 48 to 28 × 28 pixels").wait_for()
    page.get_by_role("button", name="Predict").click()
    bars = page.locator(".bars")
    bars.wait_for()
    empty = bars.inner_text()
    box = page.locator("canvas.drawing").bounding_box()
    page.mouse.move(box["x"] + 140, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 138, box["y"] + 230, steps=8)
    page.mouse.up()
    assert page.get_by_label("Or an image").input_value() == ""
    assert "The input has changed" in page.locator(".output").inner_text()
    assert "run=1" not in page.url
    tab.screenshot("model-old-result", full=False)
    page.get_by_role("button", name="Predict").click()
    page.locator(".old").wait_for(state="detached")
    sync_api.expect(bars).not_to_have_text(empty)
    page.set_viewport_size({"width": 400, "height": 860})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_sound_file_is_recognised(open_model, tmp_path):
    numpy = pytest.importorskip("numpy")
    soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")
    tab = open_model("model=ctc-digits")
    noise = numpy.random.default_rng(0).normal(0, 0.05, 8000)
    soundfile.write(tmp_path / "noise.wav", noise, 8000)
    tab.page.get_by_label("Sound").set_input_files(tmp_path / "noise.wav")
    tab.page.get_by_role("button", name="Generate").click()
    tab.page.wait_for_selector(".hypotheses, .problem")
    assert tab.page.locator(".problem").count() == 0


def test_errors_of_models_are_shown(open_model):
    tab = open_model("model=absent.safetensors", ".problem")
    assert "absent.safetensors" in tab.page.locator(".problem").inner_text()
    assert tab.violations() == []


def test_the_list_of_models_is_accessible(open_model):
    tab = open_model("", ".card")
    for theme, width in (("light", 1280), ("dark", 400)):
        tab.page.emulate_media(color_scheme=theme)
        tab.page.set_viewport_size({"width": width, "height": 900})
        assert tab.violations() == []
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def graph_model(tmp_path_factory):
    """The file of a model of graphs with tables of nodes and edges beside it."""
    folder = tmp_path_factory.mktemp("graph")
    model = zoo.compose("gat-small", seed=0, overrides=["model.features=2", "model.classes=2"])
    names = [*(f"n{i}" for i in range(7)), "A node with a name that is long"]
    rows = [f"{name},{('red', 'blue')[i % 2]},train,{i},1" for i, name in enumerate(names)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,split,x,y", *rows]))
    edges = [f"{a},{b}" for a, b in zip(names, names[1:] + names[:1], strict=True)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    return zoo.save(model, folder / "model.safetensors")


def test_a_graph_is_classified_and_drawn_with_the_names_of_its_nodes(open_model, graph_model):
    tab = open_model(f"model={graph_model}")
    page = tab.page
    page.get_by_label("Table of nodes").set_input_files(graph_model.parent / "nodes.csv")
    page.get_by_label("Table of edges").set_input_files(graph_model.parent / "edges.csv")
    sync_api.expect(page.locator("#yaml")).to_contain_text("--data 'edges=edges.csv'")
    page.get_by_role("button", name="Predict").click()
    sync_api.expect(page.locator(".bars li")).to_have_count(8)
    assert page.locator(".bars li").first.inner_text().startswith("n0 ")
    page.get_by_role("button", name="Show attention").click()
    frame = page.frame_locator("iframe")
    sync_api.expect(frame.locator(".readout")).to_contain_text("node “n0 · red”")
    for theme, width in (("light", 1280), ("dark", 1280), ("light", 400)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        tab.screenshot(f"model-graph-{theme}-{width}")
        assert tab.violations() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_dataset_on_this_machine_is_part_of_the_address(open_model, graph_model):
    folder = graph_model.parent
    data = f"type: graph\nnodes: {folder}/nodes.csv\nedges: {folder}/edges.csv\nsplit: all\n"
    page = open_model(f"model={graph_model}&data={quote(data)}&run=1").page
    sync_api.expect(page.locator(".bars li")).to_have_count(8)
    page.get_by_label("Number of the example").fill("2")
    page.get_by_role("button", name="Predict").click()
    sync_api.expect(page.locator(".problem")).to_contain_text("example 2: the dataset has 1")


@pytest.fixture
def hub(tmp_path):
    """A hub on this machine, and a server that uses it."""
    with Hub() as hub:
        started = UiServer(env=environment(hub, tmp_path / "home"))
        yield hub, started
        code, _, _ = started.interrupt()
        assert code == 0


@pytest.mark.slow
def test_a_model_of_the_hub_is_loaded_and_run(visit, hub, tmp_path):
    hub, server = hub
    arguments = ("push", "g2p-bahdanau", NAME)
    done = command(hub, tmp_path / "pushing", *arguments, here=tmp_path, HF_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    tab = visit(viewport={"width": 1280, "height": 860})
    page = tab.page
    page.set_default_timeout(60_000)
    page.goto(server.page("/models"))
    page.get_by_label("File, folder or repository").fill(NAME)
    page.get_by_role("button", name="Load").click()
    sync_api.expect(page.locator("main")).to_contain_text("from the Hub")
    page.get_by_label("Text").fill("attention")
    page.get_by_role("button", name="Generate").click()
    sync_api.expect(page.locator(".hypotheses li").first).to_contain_text("AH T EH N SH AH N")
    assert any(NAME in request.path for request in hub.requests)
    page.goto(server.page("/models?model=zoo-team%2Fabsent"))
    sync_api.expect(page.locator(".problem")).to_contain_text("zoo-team/absent")
    assert tab.hosts() == {"127.0.0.1"}
