"""README and docs: commands and examples run, lists are complete."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from docs_kit import DOCS, run_page
from typer.testing import CliRunner

import zoo
import zoo.errors
import zoo.registry.blueprint
from zoo.cli.main import app
from zoo.interfaces import KINDS
from zoo.testing.laws import LAWS
from zoo_exchange.mapping import OPERATIONS, read_map

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SPECS = (ROOT / "docs" / "specs.md").read_text(encoding="utf-8")
INTERFACES = (ROOT / "docs" / "interfaces.md").read_text(encoding="utf-8")
MAPS = (ROOT / "docs" / "maps.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def _block(language, text=README):
    return re.search(rf"```{language}\n(.*?)```", text, re.S)[1]


def _run(*arguments, code=0):
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(_block("yaml", SPECS))
    return tmp_path


def test_the_readme_has_at_most_900_words_and_the_architecture_1500():
    assert len(README.split()) <= 900
    assert len(ARCHITECTURE.split()) <= 1500


def test_the_training_of_the_readme_runs(folder):
    """With a smaller model, a smaller vocabulary and fewer steps."""
    lines = re.search(r"^    extends: transformer-small\n(?:    .*\n)+", README, re.M)[0]
    spec = re.sub("^    ", "", lines, flags=re.M)
    small = "model: {source: {vocab: 300, dim: 16}, encoder: {layers: 1}, decoder: {layers: 1}}\n"
    spec = spec.replace("steps: 5000", "steps: 2").replace("warmup: 400", "warmup: 1")
    (folder / "translator.yaml").write_text(spec + small)
    for name in set(re.findall(r"\w+\.(?:en|de)\b", README)):
        (folder / name).write_text("two dogs play .\na man sleeps .\n")
    verbs = r"tokenizer train|train|eval run|generate run|predict run"
    commands = re.findall(rf"^    zoo ((?:{verbs}) .*?)(?:  +#.*)?$", README, re.M)
    assert len(commands) == 4
    outputs = [_run(*shlex.split(command)) for command in commands]
    assert "bleu" in outputs[2]


def test_the_python_of_the_readme_runs(folder):
    exec(compile(_block("python"), "README.md", "exec"), {})
    assert (folder / "model.safetensors").exists()


def test_the_tree_in_the_page_is_the_output_of_check():
    printed = [line.strip() for line in _run("check", "bahdanau-2015").splitlines()]
    shown = re.search(r"( +part +type.*?)\n\n", SPECS, re.S)[1]
    for line in shown.splitlines():
        assert line.strip() in printed


def test_the_errors_in_the_page_are_the_output_of_check(folder):
    text = (
        _block("yaml", SPECS).replace("hidden: 256,", "hidden: -3,").replace("additive", "aditive")
    )
    (folder / "my.yaml").write_text(text)
    with pytest.raises(zoo.SpecError) as caught:
        zoo.check("my.yaml")
    shown = re.findall(r"^    (my\.yaml:.*)$", SPECS, re.M)
    assert str(caught.value).splitlines() == shown


@pytest.mark.parametrize("module", [zoo.registry.blueprint, zoo.errors], ids=lambda m: m.__name__)
def test_docstring_examples_run(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


def test_every_link_of_the_readme_exists():
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists()


NOT_RUN = {
    "architecture.md",
    "artifact.md",
    "atlas.md",
    "components.md",
    "concepts.md",
    "data.md",
    "glossary.md",
    "fast-lane.md",
    "hub.md",
    "interfaces.md",
    "laboratory.md",
    "importers.md",
    "maps.md",
    "new-architecture.md",
    "performance.md",
    "plugins.md",
    "reproductions.md",
    "spec-language.md",
    "ten-minute-plugin.md",
    "ui.md",
}
"""Pages without commands to run; tests/hub runs that of the Hub, tests/test_third_party.py that of
the plugin, tests/plugins/zoo_ui `zoo ui`."""


LIBRARIES = {
    "bring-a-model.md": ("transformers",),
    "hugging-face-trainer.md": ("transformers", "accelerate"),
    "lightning.md": ("lightning",),
}
"""The optional libraries of a page."""

# Pages that train a model: the metric that `zoo eval` prints, and its lowest and highest value.
RESULTS = {
    "translation.md": ("bleu", 90, 100.1),
    "images.md": ("accuracy", 0.95, 1),
    "speech.md": ("wer", 0, 0.05),
    "graphs.md": ("accuracy", 0.95, 1),
    "graph-classification.md": ("accuracy", 0.9, 1),
}


LONG = {"images.md", "speech.md", "translation.md"}
"""Pages with a training that takes several seconds."""
SLOW = {"hugging-face-trainer.md", "lightning.md", "scaling.md"}
PAGES = [
    pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name in sorted(
        {path.name for path in DOCS.glob("*.md")} - NOT_RUN - (RESULTS.keys() - LONG)
    )
]


SKIPPED = ("weights.safetensors",)
"""Words of commands that need weights of a model."""
SHORT = 12
"""The steps of a training in the quick test of a page."""


@pytest.mark.parametrize("page", PAGES)
def test_the_code_and_commands_of_a_page_run(page, folder):
    """With short trainings."""
    for library in LIBRARIES.get(page, ()):
        pytest.importorskip(library, reason=f"{page} needs {library}")
    assert run_page(page, skip=SKIPPED, max_updates=SHORT) >= 3


@pytest.mark.parametrize("page", sorted({path.name for path in DOCS.glob("*.md")} - NOT_RUN))
def test_a_page_with_commands_has_at_most_80_lines(page):
    assert len((DOCS / page).read_text(encoding="utf-8").splitlines()) <= 80


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=[pytest.mark.slow] if p in LONG else []) for p in RESULTS]
)
def test_the_training_of_a_page_has_its_result(page, folder):
    outputs = {}
    assert run_page(page, skip=SKIPPED, outputs=outputs) >= 3
    metric, lowest, highest = RESULTS[page]
    (printed,) = (text for command, text in outputs.items() if command.startswith("zoo eval"))
    (value,) = re.findall(rf"^{metric} +(\S+)", printed, re.M)
    assert lowest <= float(value) <= highest, printed


@pytest.mark.parametrize("page", RESULTS)
def test_twelve_lines_and_three_commands_train_and_evaluate_a_model(page):
    """In the first section of the page."""
    text = (DOCS / page).read_text(encoding="utf-8").partition("\n## ")[0]
    lines = re.search(r"```yaml\n# \S+\n(.*?)```", text, re.S)[1].splitlines()
    assert 3 <= len(lines) <= 12
    commands = re.findall(r"^    zoo (tokenizer train|train|eval) ", text, re.M)
    assert [name for name in commands if "tokenizer" not in name] == ["train", "eval"]
    assert len(commands) <= 3


def test_the_pages_list_every_law_and_every_module():
    for kind in KINDS:
        row = re.search(rf"^\| {kind} \| (.*) \|$", INTERFACES, re.M)[1].split(", ")
        common = {law.name for law in LAWS["metric"]} & {law.name for law in LAWS["scorer"]}
        assert row == [law.name for law in LAWS[kind] if law.name not in common]
    for path in (ROOT / "zoo").iterdir():
        named = f"{path.name}/`" if path.is_dir() else f"{path.name}`"
        hidden = path.name in ("__pycache__", "__main__.py", "py.typed")
        assert hidden or named in ARCHITECTURE, path.name


def test_the_map_in_the_page_is_valid_and_its_table_lists_every_operation(tmp_path):
    text = re.search(r"```yaml\n(.*?)```", MAPS, re.S)[1]
    (tmp_path / "map.yaml").write_text(text)
    spec = {"model": {"decoder": {"attention": {"heads": 4}}}}
    assert len(read_map(tmp_path / "map.yaml", spec=spec).rules) == 2
    rows = re.findall(r"^\| (`[a-z-]+.*?) \|.*\|.*\|$", MAPS, re.M)
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)", row)}
    assert set(OPERATIONS) <= named
