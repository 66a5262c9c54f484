"""The sdist and the wheel contain the right files, and the installed wheel works."""

import email
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging_kit import ROOT, Environment, build

ROUND_TRIP = """
import sys, torch, zoo
from zoo.cli.main import main
sys.argv = ["zoo", "check", "bahdanau-reversal"]
try:
    main()
except SystemExit as stop:
    assert not stop.code
model = zoo.compose("bahdanau-reversal", seed=0)
zoo.save(model, "model.safetensors")
loaded = zoo.load("model.safetensors")
torch.testing.assert_close(dict(loaded.state_dict()), dict(model.state_dict()), rtol=0, atol=0)
print(zoo.__file__)
from zoo.hub.models import find
print(zoo.load("gat-cora").spec["name"], find("gat-cora"))
"""


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def _read(wheel):
    """The files of a wheel by name; those of `*.dist-info` without the directory."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return {name.partition(".dist-info/")[2] or name: data for name, data in files.items()}


def _sources(folder):
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_contains_every_source_file_and_nothing_else(wheel):
    core = {f"zoo/{name}" for name in _sources(ROOT / "zoo")}
    metadata = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    expected = core | _sources(ROOT / "plugins") | metadata | {"zoo/registry.yaml"}
    files = _read(wheel)
    assert set(files) == expected
    pages = {name for name in files if name.startswith(("zoo_ui/static/", "zoo_inspect/assets/"))}
    assert {Path(name).suffix for name in set(files) - metadata - pages} == {
        ".py",
        ".tmpl",
        ".typed",
        ".yaml",
    }
    assert {Path(name).suffix for name in pages} == {"", ".css", ".html", ".js", ".svg", ".woff2"}
    assert files["zoo/registry.yaml"] == (ROOT / "registry.yaml").read_bytes()
    assert files["licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_every_package_of_the_wheel_is_typed_and_every_plugin_is_an_entry_point(wheel):
    files = _read(wheel)
    packages = {name.split("/")[0] for name in files if name.endswith("/__init__.py")}
    assert {name.split("/")[0] for name in files if name.endswith("/py.typed")} == packages
    entry_points = ConfigParser()
    entry_points.read_string(files["entry_points.txt"].decode())
    assert set(entry_points["zoo"].values()) == packages - {"zoo"}


def test_metadata_names_licence_and_python(wheel):
    metadata = email.message_from_bytes(_read(wheel)["METADATA"])
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_sdist_contains_sources_and_documentation_but_no_tests(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    generated = {"PKG-INFO", ".gitignore", "pyproject.toml", "hatch_build.py", "registry.yaml"}
    pages = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "SECURITY.md"}
    folders = {
        f"{folder}/{name}"
        for folder in ("zoo", "plugins", "docs")
        for name in _sources(ROOT / folder)
    }
    assert names == generated | pages | folders


def test_wheel_from_the_sdist_equals_wheel_from_the_tree(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(tmp_path)
    (project,) = tmp_path.iterdir()
    assert _read(build("wheel", project, project / "dist")) == _read(wheel)


def test_installed_wheels_work_outside_the_checkout(wheel, tmp_path):
    weights = build("wheel", ROOT / "weights", tmp_path / "weights")
    environment = Environment(tmp_path / "environment", wheel, weights)
    version = wheel.name.split("-")[1]
    assert environment.zoo("--version") == f"zoo {version}\n"
    assert "additive" in environment.zoo("list", "--kind", "scorer")
    *tree, imported, shipped = environment.python("-c", ROUND_TRIP).splitlines()
    assert "seq2seq" in "".join(tree)
    assert Path(imported) == environment.site / "zoo" / "__init__.py"
    assert shipped == f"gat-cora {environment.site / 'zoo_weights' / 'gat-cora.safetensors'}"
    assert (environment.site / "zoo_weights" / "NOTICE.md").is_file()
