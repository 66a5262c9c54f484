"""Building a spec in a real browser."""

import re

import pytest
import yaml

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def _field(page, path):
    return page.locator(f'[id="field-{path}"]')


def _error(page, path):
    return page.locator(f'[id="field-{path}-error"]')


@pytest.fixture
def build(visit, server):
    """A function that opens a spec and waits until it is checked."""

    def open_spec(source="spec=bahdanau-reversal"):
        tab = visit(viewport={"width": 1280, "height": 860})
        tab.page.set_default_timeout(60_000)
        tab.page.goto(server.page(f"/build?{source}"))
        tab.page.wait_for_selector(".status.valid")
        return tab

    return open_spec


def test_an_error_is_shown_at_its_field_and_disappears_when_it_is_fixed(build):
    tab = build()
    page = tab.page
    hidden = _field(page, "model.encoder.hidden")
    hidden.fill("-4")
    message = _error(page, "model.encoder.hidden")
    message.wait_for()
    assert message.inner_text() == "is -4, but should be greater than or equal to 1"
    assert hidden.get_attribute("aria-invalid") == "true"
    assert page.locator(".status").inner_text() == "1 problem"
    tab.screenshot("build-error", full=False)
    page.locator(".problems button").click()
    assert page.evaluate("document.activeElement.id") == "field-model.encoder.hidden"
    hidden.fill("24")
    page.wait_for_selector(".status.valid")
    assert not message.is_visible()
    assert "hidden: 24" in page.locator("#yaml").inner_text()
    page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('no server')); }")
    hidden.fill("25")
    sync_api.expect(page.locator(".check")).to_contain_text("This spec has not been checked.")
    assert page.locator(".tree").count() == 0


def test_a_missing_key_is_shown_at_the_field_to_fill(build):
    page = build().page
    _field(page, "model.encoder.hidden").fill("")
    message = _error(page, "model.encoder.hidden")
    message.wait_for()
    assert message.inner_text() == "key 'hidden' is missing"


def test_the_tree_has_shapes_parameters_and_bytes_as_the_check(build, server):
    page = build().page
    rows = page.locator(".tree tbody tr").all_inner_texts()
    spec = server.call("/api/spec", {"source": "bahdanau-reversal"})["data"]
    report = server.call("/api/check", {"page": "tree", "sequence": 0, "data": spec})
    assert len(rows) == len(report["parts"])
    for row, part in zip(rows, report["parts"], strict=True):
        cells = row.split("\t")
        assert cells[1:4] == [
            part["type"],
            part["shape"] or "",
            f"{part['parameters']:,}" if part["parameters"] else "",
        ]


def test_a_slot_lists_the_parts_that_pass_with_the_difference_in_parameters(build):
    tab = build()
    page = tab.page
    _field(page, "model.encoder.hidden").fill("24")
    sync_api.expect(page.locator(".tree")).to_contain_text("[B, S, 48]")
    before = page.locator(".status").inner_text()
    _field(page, "model.decoder.attention.scorer").click()
    page.get_by_text(re.compile(r"\d+ of \d+ parts fit")).wait_for()
    rows = page.locator(".parts li").all_inner_texts()
    names = [row.split("\n")[0] for row in rows]
    assert "additive" in names
    assert "dot" not in names  # its widths do not match
    general = rows[names.index("general")]
    assert re.search(r"[+−][\d,]+", general)
    tab.screenshot("build-parts", full=False)
    page.get_by_role("button", name="general", exact=True).click()
    sync_api.expect(page.locator(".status.valid")).not_to_have_text(before)
    assert _field(page, "model.decoder.attention.scorer").inner_text() == "general"
    change = int(re.search(r"[+−][\d,]+", general)[0].replace("−", "-").replace(",", ""))
    counts = [
        int(re.search(r"[\d,]+", text)[0].replace(",", ""))
        for text in (before, page.locator(".status").inner_text())
    ]
    assert counts[1] - counts[0] == change


TRAINED = """
extends: bahdanau-reversal
name: reversal
preprocessing:
  source: {type: text, tokenizer: letters.json}
  target: {type: text, tokenizer: letters.json}
train:
  data: {type: parallel-text, source: train.txt, target: train.txt}
  validation: {type: parallel-text, source: val.txt, target: val.txt}
  optimiser: {type: adamw, lr: 0.003}
  batch: {items: 8}
  steps: 12
"""


def test_a_swap_becomes_a_comparison(build, tmp_path, monkeypatch):
    from zoo_lab.compare.study_file import StudySettings, read_study

    (tmp_path / "trained.yaml").write_text(TRAINED)
    tab = build(f"file={tmp_path / 'trained.yaml'}")
    page = tab.page
    _field(page, "model.decoder.attention.scorer").click()
    page.get_by_text(re.compile(r"\d+ of \d+ parts fit")).wait_for()
    page.get_by_role("button", name="Compare additive with general").click()
    dialog = page.locator("dialog").last
    for section in dialog.locator("section:has(pre)").all():
        name = section.locator("h3").inner_text()
        (tmp_path / name).write_text(section.locator("pre").inner_text())
    dialog.get_by_text("the median of 5").wait_for()
    tab.screenshot("build-compare", full=False)
    assert dialog.locator(".warning").count() == 0
    assert dialog.locator("pre").last.inner_text() == "zoo compare compare-scorer.yaml"
    monkeypatch.chdir(tmp_path)
    plan = read_study("compare-scorer.yaml", StudySettings())
    assert [variant.changes for variant in plan.variants.values()] == [
        (),
        ('model.decoder.attention.scorer={"type": "general"}',),
    ]


@pytest.mark.slow
def test_a_spec_without_training_is_measured_and_gets_a_section_train(build, tmp_path, monkeypatch):
    from zoo_lab.compare.study_file import StudySettings, read_study

    tab = build()
    page = tab.page
    _field(page, "model.decoder.attention.scorer").click()
    page.get_by_text(re.compile(r"\d+ of \d+ parts fit")).wait_for()
    page.get_by_role("button", name="Compare additive with general").click()
    dialog = page.locator("dialog").last
    dialog.get_by_text("the median of 5").wait_for()
    rows = dialog.locator("tbody tr").all_inner_texts()
    assert rows[0].split("\t") == ["parameters", "68,048", "63,888"]
    assert all(re.search(r"\d ms", row) for row in rows[2:])
    add = page.get_by_role("button", name="Add train with parallel-text")
    add.wait_for()
    for theme, width in (("light", 1280), ("dark", 1280), ("light", 400)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        tab.screenshot(f"build-untrained-{theme}-{width}", full=False)
        assert tab.violations() == []
    add.click()
    for section in dialog.locator("section:has(pre)").all():
        name = section.locator("h3").inner_text()
        (tmp_path / name).write_text(section.locator("pre").inner_text())
    monkeypatch.chdir(tmp_path)
    plan = read_study("compare-scorer.yaml", StudySettings())
    assert len(plan.variants) == 2
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    data = yaml.safe_load(page.locator("#yaml").inner_text())
    assert data["train"]["data"] == {"type": "parallel-text", "source": "a.en", "target": "a.de"}
    page.wait_for_selector(".status.valid")
    assert _field(page, "train.steps").input_value() == "1000"


def test_a_recipe_is_a_start_with_data_and_training(visit, server):
    tab = visit(viewport={"width": 1280, "height": 860})
    page = tab.page
    page.set_default_timeout(60_000)
    page.goto(server.page("/build"))
    page.get_by_label("Search specs").fill("gat cora")  # while they are read
    page.locator(".card").first.wait_for()
    sync_api.expect(page.locator(".card")).to_have_count(3)  # two specs and the recipe
    page.get_by_label("with training").check()
    sync_api.expect(page.locator(".card")).to_have_count(1)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert tab.violations() == []
    page.locator(".card").click()
    page.wait_for_selector(".status.valid")
    data = yaml.safe_load(page.locator("#yaml").inner_text())
    assert data["name"] == "gat-cora"
    assert data["train"]["data"]["file"] == "$ZOO_DATA/planetoid/cora.npz.xz"
    assert "recipe=gat-cora" in page.url


def test_the_state_is_in_the_address_and_in_the_yaml(build, visit, server):
    page = build().page
    _field(page, "model.encoder.hidden").fill("20")
    page.wait_for_url("**/#/build?data=*")
    page.wait_for_selector(".status.valid")
    text, state = page.locator("#yaml").inner_text(), page.evaluate("location.hash.slice(1)")
    other = visit().page
    other.set_default_timeout(60_000)
    other.goto(server.page(state))
    other.wait_for_selector(".status.valid")
    assert other.locator("#yaml").inner_text() == text
    data = yaml.safe_load(text)
    assert data["model"]["encoder"]["hidden"] == 20
    other.goto(server.page("/build"))
    other.get_by_label("Paste a spec").fill("a: 1\na: 2")
    other.get_by_role("button", name="Open").click()
    other.get_by_role("button", name="line 2").click()
    assert other.evaluate("document.activeElement.selectionStart") == len("a: 1\n")
    other.get_by_label("Paste a spec").fill(text)
    other.get_by_role("button", name="Open").click()
    other.wait_for_selector(".status.valid")
    assert other.locator("#yaml").inner_text() == text


def test_a_spec_is_built_from_nothing_with_the_keyboard(visit, server):
    tab = visit(viewport={"width": 1280, "height": 860})
    page = tab.page
    page.set_default_timeout(60_000)
    page.goto(server.page("/build"))
    page.wait_for_selector(".card")
    page.get_by_role("button", name="Empty spec").focus()
    page.keyboard.press("Enter")
    _error(page, "model").wait_for()
    assert _error(page, "model").inner_text() == "key 'model' is missing"
    _tab_to(page, "field-model")
    page.keyboard.press("Enter")
    page.locator("dialog").wait_for()
    page.get_by_text(re.compile(r"\d+ of \d+ parts fit")).wait_for()
    sync_api.expect(page.locator(".parts")).to_contain_text("then set source, encoder, decoder.")
    assert page.locator("dialog details").is_hidden()
    tab.screenshot("build-parts-of-nothing", full=False)
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    assert page.evaluate("document.activeElement.id") == "field-model"


def _tab_to(page, identifier, max_steps=60):
    """Press Tab until an element has the focus, which must be visible."""
    for _ in range(max_steps):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == identifier:
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid"
            return
    raise AssertionError(f"{identifier} is not reached with the keyboard")


def test_a_list_is_extended_only_when_a_part_is_chosen(build):
    page = build("spec=bahdanau-small").page
    before = page.locator("#yaml").inner_text()
    page.locator(".spec > .more > summary").click()
    page.get_by_role("button", name="Set train", exact=True).click()
    assert page.evaluate("document.activeElement.id") == "field-train"
    assert page.locator("[data-path=train] > details").evaluate("each => each.open")
    page.get_by_label("Remove train", exact=True).click()
    assert page.evaluate("document.activeElement.id") == "field-train"
    assert page.locator("#yaml").inner_text() == before
    add = page.get_by_label("Add to metrics")
    add.focus()
    page.keyboard.press("Enter")
    chosen = page.locator(".parts button.part").first
    chosen.wait_for()
    place = chosen.bounding_box()
    page.wait_for_url("**slot=metrics*")
    page.get_by_text("parts fit.").wait_for()
    assert chosen.bounding_box() == place  # later parts do not move it away from the pointer
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    assert page.locator("#yaml").inner_text() == before
    page.keyboard.press("Enter")
    name = chosen.inner_text()
    chosen.click()
    # The status of the spec before is also valid.
    page.wait_for_function("text => document.querySelector('#yaml').innerText !== text", arg=before)
    page.wait_for_selector(".status.valid")
    metrics = yaml.safe_load(page.locator("#yaml").inner_text())["metrics"]
    assert metrics == ["bleu", {"type": name}]


def test_an_open_comparison_is_in_the_address(build):
    page = build("spec=bahdanau-reversal&slot=model.decoder.attention.scorer&compare=general").page
    page.get_by_role("heading", name="Compare with general").wait_for()
    assert page.url.endswith("slot=model.decoder.attention.scorer&compare=general")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: url.endswith("slot=model.decoder.attention.scorer"))
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: url.endswith("#/build?spec=bahdanau-reversal"))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("/components/%", "There is no page 'components/%'"),
        ("/absent", "There is no page 'absent'"),
        ("/build?data=%%%", "The spec in this address cannot be read"),
        ("/build?data=abc", "The spec in this address cannot be read"),
    ],
)
def test_an_address_that_names_nothing_is_an_error(visit, server, state, message):
    page = visit().page
    page.set_default_timeout(60_000)
    page.goto(server.page(state))
    sync_api.expect(page.locator(".problem")).to_contain_text(message, timeout=60_000)


def test_the_page_is_accessible_and_fits_in_light_and_dark(build):
    tab = build()
    _field(tab.page, "model.encoder.hidden").fill("0")
    _error(tab.page, "model.encoder.hidden").wait_for()
    for theme, width in (("light", 1280), ("dark", 1280), ("light", 800), ("dark", 400)):
        tab.page.emulate_media(color_scheme=theme)
        tab.page.set_viewport_size({"width": width, "height": 860})
        tab.screenshot(f"build-{theme}-{width}", full=False)
        assert tab.violations() == []
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
