"""The pages of components in a real browser, with a third-party plugin."""

import os
import re

import pytest
from plugin_kit import scorer
from ui_kit import UiServer

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def test_components_are_searched_and_walked_with_the_keyboard(visit, server):
    tab = visit(viewport={"width": 1280, "height": 860})
    page = tab.page
    page.goto(server.page())
    page.get_by_label("Search").fill("additive bahdanau")
    sync_api.expect(page.locator(".results")).to_contain_text("additive")
    assert "q=additive" in page.url
    page.get_by_label("Search").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "card"
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("h1")).to_contain_text("additive")
    page.go_back()
    sync_api.expect(page.get_by_label("Search")).to_have_value("additive bahdanau")


@pytest.mark.slow
def test_a_component_has_its_formula_and_runs_its_laws(visit, server):
    tab = visit(viewport={"width": 1280, "height": 860})
    page = tab.page
    page.set_default_timeout(60_000)
    page.goto(server.page("/components/alignment/alignment/soft"))
    page.locator(".katex-display").first.wait_for()
    page.get_by_role("button", name="Run the laws").click()
    page.get_by_text("laws hold").wait_for()
    assert page.locator(".badge.passed").count() > 3
    assert all(page.locator(".laws li p:first-of-type").all_inner_texts())
    assert page.locator(".badge.failed").count() == 0
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        tab.screenshot(f"component-{theme}")
        assert tab.violations() == []
    page.goto(server.page("/components"))
    page.locator(".card").first.wait_for()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        tab.screenshot(f"components-{theme}", full=False)
        assert tab.violations() == []
    for width in (800, 400):
        page.set_viewport_size({"width": width, "height": 860})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.goto(server.page("/components/objective/ctc/ctc"))
    sync_api.expect(page.locator(".prose code").first).to_be_visible()
    tab.screenshot("component-400", full=False)
    assert "``" not in page.locator("main").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_every_formula_of_a_component_is_rendered(visit, server):
    page = visit().page
    page.goto(server.page("/components"))
    registry = server.call("/api/registry")
    sources = {
        block["text"]
        for each in registry["components"]
        for block in server.call(
            "/api/component?kind={kind}&plugin={plugin}&name={name}".format(**each)
        )["blocks"]
        if block["type"] == "formula"
    }
    assert len(sources) > 100
    page.add_script_tag(url=f"http://127.0.0.1:{server.port}/static/katex/katex.min.js")
    failed = page.evaluate(
        """sources => sources.filter((source) => {
          try { window.katex.renderToString(source, {displayMode: true, strict: "error"}); }
          catch { return true; }
        })""",
        sorted(sources),
    )
    assert failed == []


@pytest.mark.slow
def test_components_of_a_third_party_plugin_are_shown(visit, tmp_path):
    site = tmp_path / "site"
    info = site / "stranger-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "stranger_plugin.py").write_text(scorer("stranger"))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[zoo]\nstranger = stranger_plugin\n")
    environment = os.environ | {"PYTHONPATH": str(site), "ZOO_PLUGINS": "stranger"}
    server = UiServer(env=environment | {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    page = visit().page
    page.set_default_timeout(60_000)
    page.goto(server.page("/components?q=stranger"))
    page.locator(".card").click()
    page.get_by_role("button", name="Run the laws").click()
    page.get_by_text(re.compile("laws (hold|fail)")).wait_for()
    sync_api.expect(page.locator("aside")).to_contain_text("stranger 1.0")
    assert server.interrupt()[0] == 0
