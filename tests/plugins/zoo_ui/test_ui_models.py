"""Running models and looking at their attention in a real browser."""

import re

import pytest

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


def test_a_model_without_a_single_input_names_the_commands(open_model):
    tab = open_model("model=gat-cora", ".warning")
    assert "zoo predict" in tab.page.locator(".warning").inner_text()
