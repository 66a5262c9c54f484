"""A third-party plugin from `zoo new-plugin` to its removal, in its own environment."""

import importlib
import json
import re
import sys

import pytest
from docs_kit import read_page
from packaging_kit import ROOT, Environment

from zoo.scaffold import write_plugin
from zoo.testing import check


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("fresh") / "venv", ROOT)


SPEC = """
zoo: 1
name: third-party
model:
  type: seq2seq
  source: {type: token, vocab: 9, dim: 4}
  encoder: {type: gru, hidden: 3}
  decoder:
    type: luong-rnn
    hidden: 5
    attention: {scorer: {type: angular, hidden: 7}, align: soft}
"""


@pytest.mark.slow
def test_a_new_plugin_can_be_installed_used_and_removed(environment, tmp_path):
    environment.zoo("new-plugin", "angular", "--kind", "scorer", "-o", tmp_path)
    environment.install(tmp_path / "zoo-angular")

    rows = json.loads(environment.zoo("list", "--json", "--kind", "scorer"))
    (row,) = [row for row in rows if row["name"] == "angular"]
    assert (row["plugin"], row["distribution"]) == ("angular", "zoo-angular")
    laws = json.loads(environment.zoo("test-plugin", "angular", "--json"))
    assert laws["faults"] == []
    assert {outcome["status"] for outcome in laws["outcomes"]} == {"passed"}

    spec, model = tmp_path / "spec.yaml", tmp_path / "model.safetensors"
    spec.write_text(SPEC)
    assert json.loads(environment.zoo("check", spec, "--json"))["ok"] is True
    environment.zoo("compose", spec, "-o", model)
    load = f"import zoo; m = zoo.load({str(model)!r}); print(sum(p.sum() for p in m.parameters()))"
    environment.python("-c", load)
    environment.python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "zoo-angular")
    )

    environment.uninstall("zoo-angular")
    assert "angular" not in environment.zoo("list", "--kind", "scorer")
    assert "pip install 'zoo-angular==0.1.0'" in environment.python("-c", load, code=1)
    assert "no scorer named 'angular'" in environment.zoo("check", spec, code=1)


TUTORIAL = "ten-minute-plugin.md"
_STEP = re.compile(r"```python\n# (\S+)\n(.*?)```|^    ((?:zoo|pip|pytest) [^\n]*)$", re.S | re.M)


def _write(folder, path, text):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_the_tutorial_of_plugins_runs_as_it_is_written(environment, tmp_path):
    commands = []
    for path, text, command in _STEP.findall(read_page(TUTORIAL)):
        if path:
            _write(tmp_path, path, text)
        else:
            commands.append(command)
            environment.shell(command, folder=tmp_path)
    assert [command.split()[0] for command in commands[:3]] == ["zoo", "pip", "zoo"]
    assert len(commands) == 9
    assert (tmp_path / "model.safetensors").is_file()
    environment.uninstall("zoo-helical")


def test_the_component_of_the_tutorial_satisfies_the_laws(tmp_path, monkeypatch):
    project = write_plugin("cosine", "scorer", tmp_path)
    for path, text, _ in _STEP.findall(read_page(TUTORIAL)):
        if path:
            _write(tmp_path, path, text)
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.syspath_prepend(str(project / "tests"))
    try:
        (component,) = importlib.import_module("zoo_cosine").zoo_components()
        assert {outcome.status for outcome in check(component)} == {"passed"}
        importlib.import_module(
            "test_known_value"
        ).test_the_score_of_equal_directions_is_the_scale()
    finally:
        for name in [name for name in sys.modules if name.startswith(("zoo_cosine", "test_known"))]:
            del sys.modules[name]


@pytest.mark.slow
def test_the_pages_of_the_documentation_are_those_of_the_zoo_only(tmp_path):
    write_plugin("helical", "scorer", tmp_path)
    environment = Environment(tmp_path / "venv", tmp_path / "zoo-helical")
    checkout = f"{ROOT}\n{ROOT / 'plugins'}\n"
    (environment.site / "checkout.pth").write_text(checkout, encoding="utf-8")
    assert "helical" in environment.python("-m", "zoo", "list", "--kind", "scorer")
    script = ROOT / "docs" / "site" / "write_pages.py"
    environment.python(str(script), str(tmp_path / "pages"))
    pages = list((tmp_path / "pages").rglob("*.md"))
    assert len(pages) > 400
    assert [page for page in pages if "helical" in page.read_text(encoding="utf-8")] == []
