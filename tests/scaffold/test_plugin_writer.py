"""`zoo new-plugin`: a project of every kind whose component satisfies the laws."""

import importlib
import sys

import pytest

from zoo import ZooError
from zoo.interfaces import KINDS
from zoo.registry.discovery import validate_component
from zoo.scaffold import write_plugin
from zoo.testing import check


@pytest.fixture
def imported(monkeypatch):
    """Import a package of a written project, and forget it after the test."""

    packages = []

    def load(project, package):
        monkeypatch.syspath_prepend(str(project))
        packages.append(package)
        return importlib.import_module(package)

    yield load
    for name in [name for name in sys.modules if name.split(".")[0] in packages]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", KINDS)
def test_the_component_of_every_kind_satisfies_the_laws(kind, tmp_path, imported):
    project = write_plugin(f"my-{kind}", kind, tmp_path)
    (component,) = imported(project, f"zoo_my_{kind}").zoo_components()
    assert (component.kind, component.name) == (kind, f"my-{kind}")
    assert validate_component(component) is None
    assert "passed" in {outcome.status for outcome in check(component)}


def test_a_project_is_complete(tmp_path):
    project = write_plugin("two-words", "scorer", tmp_path)
    files = sorted(path.relative_to(project).as_posix() for path in project.rglob("*.*"))
    assert files == [
        "README.md",
        "pyproject.toml",
        "tests/test_two_words.py",
        "zoo_two_words/__init__.py",
        "zoo_two_words/two_words.py",
    ]
    assert not [path for path in tmp_path.iterdir() if path != project]
    for path in project.rglob("*.*"):
        assert "$" not in path.read_text(encoding="utf-8")


def test_the_importer_satisfies_the_laws(tmp_path, imported):
    project = write_plugin("my-importer", "importer", tmp_path)
    (importer,) = imported(project, "zoo_my_importer").zoo_importers()
    assert importer.name == "my-importer"
    assert {outcome.status for outcome in check(importer)} == {"passed"}
    assert "zoo list --importers" in (project / "README.md").read_text(encoding="utf-8")


def test_an_existing_folder_is_not_changed(tmp_path):
    project = write_plugin("mine", "scorer", tmp_path)
    (project / "README.md").write_text("my own\n")
    with pytest.raises(ZooError, match="zoo-mine"):
        write_plugin("mine", "encoder", tmp_path)
    assert (project / "README.md").read_text() == "my own\n"


@pytest.mark.parametrize("name", ["", "My", "a_b", "class", "-a", "a-", "../a", "a" + chr(10)])
def test_an_invalid_name_raises_and_writes_nothing(name, tmp_path):
    with pytest.raises(ZooError, match="not a valid plugin name"):
        write_plugin(name, "scorer", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_kind_raises(tmp_path):
    with pytest.raises(ZooError, match=r"'scorr'.*'scorer'"):
        write_plugin("mine", "scorr", tmp_path)


def test_a_folder_that_cannot_be_written_raises(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ZooError, match="zoo-mine"):
        write_plugin("mine", "scorer", tmp_path / "file")
