"""The site of docs/site: pages of everything, current facts, equations that parse, no network."""

import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from resource import RUSAGE_CHILDREN, getrusage

import pytest
from browser_kit import Visit, screenshot_folder
from build_site import BrokenLinks, build_html
from completeness import MissingPages, check_complete, check_facts, required
from diagrams import PLACES, slots
from docstrings import parse
from measure_facts import digest, key, law_names, measure_laws, measure_tree
from model_pages import all_equations
from search_index import words
from search_kit import search
from site_data import DOCS, ROOT, SiteData
from write_pages import NAVIGATION, write_pages
from write_pictures import DIAGRAMS, INPUTS, PICTURES, attention_picture

from zoo.interfaces import KINDS
from zoo.spec.document import read_file

KATEX = DOCS.parent / "plugins" / "zoo_ui" / "static" / "katex" / "katex.min.js"


@pytest.fixture(scope="module")
def data():
    return SiteData()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def pages(folder):
    return write_pages(folder / "pages")


@pytest.fixture(scope="module")
def site(folder, pages):
    return build_html(folder / "pages", folder / "html")


@pytest.mark.slow
def test_the_build_takes_at_most_15_seconds_of_one_core(tmp_path):
    before = getrusage(RUSAGE_CHILDREN)
    script = DOCS / "site" / "build_site.py"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, env=environment)
    after = getrusage(RUSAGE_CHILDREN)
    assert (tmp_path / "html" / "index.html").is_file()
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime <= 15


def test_what_has_no_page_fails_the_build(pages, data):
    things = dict(required(data))
    assert {name.split()[0] for name in things} == {*KINDS, "hook", "command", "spec"}
    shipped = [m for m in read_file(ROOT / "registry.yaml").data["models"] if "shipped" in m]
    assert {f"models/{model['name']}.md" for model in shipped} <= set(things.values())
    for thing in ("scorer 'additive'", "hook 'zoo_components'", "command 'train'"):
        fewer = {path: text for path, text in pages.items() if path != things[thing]}
        with pytest.raises(MissingPages, match=re.escape(f"{thing} has no page {things[thing]}")):
            check_complete(fewer, data)
    text = pages["api/zoo.md"].replace("## compose\n", "")
    with pytest.raises(MissingPages, match=r"zoo\.compose has no section in api/zoo\.md"):
        check_complete({**pages, "api/zoo.md": text}, data)


def test_every_page_is_in_the_navigation(folder, pages):
    navigation = json.loads((folder / "pages" / NAVIGATION).read_text(encoding="utf-8"))
    listed = [
        name for groups in navigation["contents"].values() for _, names in groups for name in names
    ]
    written = {path.removesuffix(".md") for path in pages if path.endswith(".md")} - {"index"}
    assert sorted(listed) == sorted(written)


def test_a_page_of_a_component_has_what_its_class_states(pages):
    page = pages["components/scorer/additive.md"]
    for text in (
        "```math\na(q, k) = v^\\top \\tanh(W q + U k)\n```",
        "[arXiv:1409.0473](https://arxiv.org/abs/1409.0473)",
        "| `hidden` | integer \\>= 1 or null | `null` | width of the hidden layer",
        "query [..., T, query_dim], key [..., S, key_dim] -> [..., T, S].",
        "`gradients`",
        "| `additive-attention` | NVIDIA H200 |",
        "[`bahdanau-2015`](../../specs/bahdanau-2015.md)",
    ):
        assert text in page, text


def test_the_facts_are_those_of_the_components_specs_and_models(data):
    hint = "run python docs/site/measure_facts.py"
    for entry in data.registry.components():
        assert set(data.laws.get(key(entry), ())) == law_names(entry), f"{key(entry)}: {hint}"
    for plugin in data.registry.plugins:
        for file in plugin.specs:
            assert data.trees[file.name]["sha256"] == digest(file), f"{file.name}: {hint}"
    for model in data.index.models:
        if model.data["shipped"]:
            stored = data.cards[model.data["name"]]["sha256"]
            assert stored == model.data["shipped"]["sha256"], f"{model.data['name']}: {hint}"


def test_what_has_no_facts_fails_the_build_with_the_command_to_run():
    data = SiteData(trees={})
    with pytest.raises(MissingPages, match=r"measure_facts\.py, which .*gat-cora"):
        check_facts(data)


def test_the_facts_are_what_is_measured(data):
    entry = data.entries["schedule/constant"]
    assert measure_laws(entry.cls) == data.laws[key(entry)]
    files = {file.name: file for plugin in data.registry.plugins for file in plugin.specs}
    assert measure_tree(files["bahdanau-reversal"]) == data.trees["bahdanau-reversal"]


def test_every_measured_benchmark_names_components(data):
    assert set(data.speeds) <= set(data.entries)
    assert "scorer/additive" in data.speeds


def test_all_equations_parse(data):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    equations = all_equations(data)
    kinds = {name.split("/")[0] for name in equations}
    assert kinds == {*KINDS, "parts"} - {"acceleration", "dataset"}
    script = """
    const katex = require(process.argv[1]);
    const found = JSON.parse(require("fs").readFileSync(0, "utf-8"));
    for (const [name, equations] of Object.entries(found)) for (const text of equations) {
      try { katex.renderToString(text, {displayMode: true, throwOnError: true, strict: "error"}); }
      catch (error) { console.log(`${name}: ${error.message}`); }
    }
    """
    done = subprocess.run(
        [node, "-e", script, str(KATEX)],
        input=json.dumps(equations | {"wrong": [r"\frac{1"]}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["wrong"], done.stdout


_RESOURCE = re.compile(r'<(?:script|img|link|iframe)\b[^>]*? (?:src|href)="([^"]*)"')


def test_pages_load_only_files_of_the_site(site):
    files = {file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file()}
    for name in sorted(files):
        if not name.endswith(".html"):
            continue
        resources = set(_RESOURCE.findall((site / name).read_text(encoding="utf-8")))
        assert len(resources) >= 5
        for resource in resources - {"data:,"}:
            assert posixpath.normpath(f"{posixpath.dirname(name)}/{resource}").lstrip("/") in files


def test_headings_do_not_have_the_ids_of_the_page_around_them(site):
    """Which would move a heading "Results" into the panel of the search."""
    text = (site / "models" / "gat-cora.html").read_text(encoding="utf-8")
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert "results" in ids


def test_a_broken_link_fails_the_build(tmp_path):
    (tmp_path / "index.md").write_text("# A\n\n[b](b.md) [c](#c) [ok](#a) [out](https://x.y)\n")
    with pytest.raises(BrokenLinks) as caught:
        build_html(tmp_path, tmp_path / "html")
    assert str(caught.value).splitlines() == [
        "index.md: there is no page or file b.md",
        "index.md: index.md has no heading #c",
    ]


def test_every_picture_is_made_by_a_script():
    made = {PICTURES / name: "docs/site/write_pictures.py" for name in DIAGRAMS}
    made |= {attention_picture(name): "docs/site/write_pictures.py" for name in INPUTS}
    made |= dict.fromkeys(DOCS.glob("atlas-*.svg"), "lab/atlas/page.py")
    made |= dict.fromkeys((DOCS / "curves").glob("*.svg"), "lab/reproductions/page.py")
    made |= {PICTURES / "draw-mnist.png": "plugins/zoo_draw/bound.py"}
    suffixes = (".png", ".svg", ".jpg", ".gif")
    assert {path for path in DOCS.rglob("*") if path.suffix in suffixes} == set(made)
    for path, script in made.items():
        assert (ROOT / script).is_file(), f"{path} is made by {script}"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[.*?\]\((.*?)\)", readme)
    assert shown
    assert {ROOT / name for name in shown} <= set(made)


def test_every_shipped_model_has_a_picture(data):
    shipped = {model.data["name"] for model in data.index.models if model.data["shipped"]}
    assert set(INPUTS) == shipped


def test_the_diagrams_are_current_and_have_every_kind():
    for name, draw in DIAGRAMS.items():
        written = (PICTURES / name).read_text(encoding="utf-8")
        assert written == draw(), "run python docs/site/write_pictures.py"
    assert {"scorer", "alignment"} <= {end for start, end in slots() if start == "attention"}
    assert set(KINDS) <= set(PLACES)


def test_docstrings_are_read_in_pieces():
    doc = parse(
        "A score.\n\n.. math:: a_1\n\n    b * c\n\nText with `code_x` and a*b.\n\n"
        "Args:\n    x, y: the\n        sizes.\n\nShapes:\n    [B] -> [T]."
    )
    assert doc.summary == "A score."
    assert doc.equations == ["a_1", "b * c"]
    assert doc.body[-1] == "Text with `code_x` and a\\*b."
    assert doc.arguments() == {"x": "the sizes.", "y": "the sizes."}
    assert doc.sections["Shapes"] == "[B] -> [T]."


def test_words_of_the_search_are_found_by_their_parts():
    assert words("The scaled-dot score of zoo.compose") == [
        *("scaled-dot", "scaled", "dot", "score", "zoo.compose", "zoo", "compose"),
    ]


# What a new user types, and a page that must be among the first.
QUERIES = {
    "fine-tune": "fine-tuning",
    "finetune bert": "fine-tuning",
    "fine tuning": "fine-tuning",
    "bf16": "training",
    "mixed precision": "training",
    "early stopping": "training",
    "lora": "adapters",
    "peft adapters": "adapters",
    "learning rate schedule": "components/schedule",
    "lr warmup": "components/schedule/inverse-sqrt",
    "beam search": "components/sampler/beam",
    "train a tokenizer": "tokenizers",
    "custom dataset": "own-files",
    "my own data": "own-files",
    "resume training": "training",
    "multi-gpu": "training",
    "distributed training": "training",
    "huggingface": "hub",
    "import bert": "importers",
    "gpt2 weights": "importers",
    "visualise attention": "attend",
    "attention heatmap": "attend",
    "install": "quickstart",
    "getting started": "quickstart",
    "bleu score": "components/metric/bleu",
    "wandb": "training",
    "tensorboard": "training",
    "checkpoints": "training",
    "gradient accumulation": "training",
    "gradient clipping": "training",
    "save a model": "hub",
    "push to hub": "hub",
    "upload model": "hub",
    "write a plugin": "ten-minute-plugin",
    "custom component": "ten-minute-plugin",
    "speech to text": "speech-recognition",
    "image captioning": "captions",
    "adamw optimizer": "components/optimiser/adamw",
    "vscode": "specs",
    "sentiment": "text-classification",
    "named entity recognition": "tagging",
    "word2vec": "vectors",
    "lightning": "lightning",
    "trainer callbacks": "callbacks",
    "torch.compile": "accelerations",
    "rope": "components/position/rotary",
    "inference": "commands/generate",
    "classification": "text-classification",
    "translate": "translation",
    "evaluate": "evaluation",
    "monotonic align": "components/alignment/monotonic",
    "zoo.compose": "api/zoo",
    "scaled-dot": "components/scorer/scaled-dot",
}


def test_queries_of_new_users_find_the_page_they_need(site):
    for (query, page), found in zip(QUERIES.items(), search(site, list(QUERIES)), strict=True):
        assert page in found[:8], f"'{query}' finds {found[:8]}"


def test_a_query_without_a_known_word_finds_nothing(site):
    assert search(site, ["xyzzy", "", "-"]) == [[], [], []]


def _visit(browser, tmp_path, **options):
    visit = Visit(browser, screenshot_folder(tmp_path), options)
    visit.page.set_default_timeout(60_000)
    return visit


RENDERED = "!document.querySelector('.math:not(:has(.katex))')"
WIDE = "document.documentElement.scrollWidth > innerWidth"
PHONE = {"width": 390, "height": 800}
SHOWN = [
    "index", "concepts", "components/scorer/additive", "models/tatoeba-por-eng-bahdanau",
    "cheatsheet", "specs/bahdanau-2015", "commands/train", "api/zoo",
]  # fmt: skip
# A page of each kind: home, concepts, component, spec, model, guide and glossary.
AUDITED = [*SHOWN[:4], "specs/bahdanau-2015", "quickstart", "glossary"]


@pytest.mark.parametrize(
    ("scheme", "size"), [("light", None), pytest.param("dark", PHONE, marks=pytest.mark.slow)]
)
def test_the_site_works_from_files(site, browser, tmp_path, scheme, size):
    """Search and maths included, without any other request."""
    options = {"viewport": size} if size else {}
    visit = _visit(browser, tmp_path, color_scheme=scheme, **options)
    for name in SHOWN:
        visit.page.goto((site / f"{name}.html").as_uri())
        visit.page.wait_for_function(RENDERED)
        assert visit.page.locator(".katex-error").count() == 0
        assert not visit.page.evaluate(WIDE), f"{name} is wider than the window"
        visit.screenshot(f"{name.replace('/', '-')}-{scheme}", full=False)
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("monotonic align")
    first = visit.page.locator("#site-results a").first
    assert first.locator("strong").inner_text() == "monotonic"
    visit.screenshot(f"search-{scheme}", full=False)
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**/components/alignment/monotonic.html")
    visit.page.wait_for_function(RENDERED)
    assert visit.problems == []
    assert visit.hosts() == {"file"}


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_pages_and_the_search_are_accessible(site, browser, tmp_path, scheme):
    visit = _visit(browser, tmp_path, color_scheme=scheme)
    for name in AUDITED:
        visit.page.goto((site / f"{name}.html").as_uri())
        visit.page.wait_for_function(RENDERED)
        assert visit.violations() == [], name
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("attention")
    visit.page.locator("#site-results a").first.wait_for()
    assert visit.violations() == [], "search"


def test_the_colours_can_be_chosen(site, browser, tmp_path):
    visit = _visit(browser, tmp_path, color_scheme="light")
    visit.page.goto((site / "index.html").as_uri())
    colour = "getComputedStyle(document.body).backgroundColor"
    before = visit.page.evaluate(colour)
    for _ in range(2):  # light, then dark
        visit.page.locator("#site-theme").click()
    assert visit.page.locator("#site-theme").get_attribute("aria-label") == "Colours: dark"
    assert visit.page.evaluate(colour) != before
    visit.page.goto((site / "glossary.html").as_uri())
    assert visit.page.evaluate(colour) != before


def test_the_menu_of_a_phone_opens(site, browser, tmp_path):
    visit = _visit(browser, tmp_path, viewport=PHONE)
    visit.page.goto((site / "components/scorer/additive.html").as_uri())
    assert not visit.page.locator("#site-sidebar").is_visible()
    visit.page.locator("#site-menu").click()
    assert visit.page.locator("#site-sidebar [aria-current]").inner_text() == "additive"
