"""The index of plugins: commands print the same with and without it, and it is never stale."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cli_kit import Shell, age
from plugin_kit import Site, scorer
from typer.testing import CliRunner

import zoo.cli
from zoo.cli.index import load_index
from zoo.cli.index.fingerprint import environment
from zoo.cli.index.store import cache_folder, index_file, write_data
from zoo.cli.main import app
from zoo.registry.component_registry import default_registry

COMMANDS = [
    "list",
    "list --json",
    "list --kind scorer",
    "list --specs",
    "list --specs --json",
    "list --maps --json",
    "list --importers",
    "list --importers --json",
    "show attention",
    "show additive",
    "show bahdanau-2015",
    "plugins",
    "plugins --json",
    "catalogue",
    "catalogue transformer",
    "catalogue --json",
]
LATE = {"torch", "numpy", "huggingface_hub", "zoo.interfaces"}
"""Modules that commands do not import if there is an index."""
SPEC = "zoo: 1\nname: kit-spec\n"


@pytest.mark.parametrize("line", COMMANDS)
def test_output_is_the_same_with_the_index_which_does_not_import_torch(
    line: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = CliRunner().invoke(app, line.split())
    assert list(tmp_path.iterdir()) == []
    if not shell.index_files:
        shell.run("list")
    result = shell.run(*line.split())
    assert not result.built_index
    assert result.stdout == built.stdout
    assert not result.modules & LATE


@pytest.mark.parametrize("line", ["--help", "list --help", "--version"])
def test_torch_is_not_imported(line: str, shell: Shell) -> None:
    if not shell.index_files:
        shell.run("list")
    assert not shell.run(*line.split()).modules & LATE


class Environment:
    """A folder of distributions with a copy of the zoo, and a shell that imports from it."""

    def __init__(self, folder: Path, *, copy_zoo: bool = False) -> None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            self.site = Site(folder / "site", monkeypatch)
        self.folder = self.site.folder
        self.shell = Shell(folder, self.folder)
        self.backup = folder / "backup"
        if copy_zoo:
            package = Path(zoo.cli.__file__).parents[1]
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(package, self.folder / "zoo", ignore=ignored)
            shutil.copy(package.parent / "registry.yaml", self.folder)

    def restore(self) -> None:
        """Undo all changes, with the original times."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.backup, self.folder)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("changing"), copy_zoo=True)
    module = environment.site.add("kit-first", scorer("kit-first"), specs={"kit-spec": SPEC})
    (environment.folder / module).rename(environment.folder / "kit_first")
    entry_points = environment.folder / "kit_first-1.2.dist-info" / "entry_points.txt"
    entry_points.write_text("[zoo]\nkit-first = kit_first\n")
    age(environment.folder)
    shutil.copytree(environment.folder, environment.backup)
    assert environment.shell.run("list").built_index
    return environment


@pytest.fixture
def changing(original: Environment) -> Iterator[Environment]:
    """An environment whose index is current, restored after each test."""
    original.shell.renew_index()  # the time of the last change cannot be restored
    assert original.shell.has_current_index()
    yield original
    original.restore()


def _edit(path: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / path).write_text(text)


def _touch(path: str) -> Callable[[Path], object]:
    return lambda folder: os.utime(folder / path)


def _edit_unnoticed(folder: Path) -> None:
    """Edit a file without a change of its size and of its time of modification."""
    path = folder / "kit_first/__init__.py"
    state, text = path.stat(), path.read_text()
    path.write_text(text.replace("kit-first", "kit-other"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert path.stat().st_size == state.st_size


def _install(folder: Path) -> None:
    info = folder / "kit_second-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kit-second\nVersion: 1.0\n")


def _upgrade(folder: Path) -> None:
    info = (folder / "kit_first-1.2.dist-info").rename(folder / "kit_first-1.3.dist-info")
    metadata = info / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.2", "Version: 1.3"))


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit a plugin": _edit("kit_first/__init__.py", scorer("kit-other")),
    "edit with the same size and time": _edit_unnoticed,
    "touch a plugin": _touch("kit_first/__init__.py"),
    "add a module": _edit("kit_first/other.py", ""),
    "add a spec": _edit("kit_first/specs/other.yaml", SPEC),
    "remove a spec": lambda folder: (folder / "kit_first/specs/kit-spec.yaml").unlink(),
    "install a distribution": _install,
    "upgrade a distribution": _upgrade,
    "uninstall a distribution": lambda folder: shutil.rmtree(folder / "kit_first-1.2.dist-info"),
    "edit entry points": _edit("kit_first-1.2.dist-info/entry_points.txt", "[zoo]\n"),
    "edit the zoo": _edit("zoo/about.py", "DISTRIBUTION = 'attention-zoo'\n"),
    "touch the zoo": _touch("zoo/interfaces/scorer.py"),
    "edit the catalogue": _edit("registry.yaml", "zoo: 1\nmodels: []\n"),
    "hide a package": _edit("zoo_luong.py", ""),
    "hide a library": _edit("pluggy.py", ""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_makes_the_index_outdated(change: str, changing: Environment) -> None:
    CHANGES[change](changing.folder)
    assert not changing.shell.has_current_index()


def test_zoo_plugins_and_the_path_select_another_index(changing: Environment) -> None:
    shell = changing.shell
    shell.environ["ZOO_PLUGINS"] = "none"
    assert not shell.has_current_index()
    del shell.environ["ZOO_PLUGINS"]
    shell.path.append(str(changing.backup))
    assert not shell.has_current_index()
    shell.path.pop()
    assert shell.has_current_index()


@pytest.mark.slow
def test_an_outdated_index_is_built_again(changing: Environment) -> None:
    assert "kit-first" in changing.shell.run("list", "--kind", "scorer").stdout
    (changing.folder / "kit_first" / "__init__.py").write_text(scorer("kit-edited"))
    catalogue = changing.folder / "registry.yaml"
    catalogue.write_text(catalogue.read_text().replace("Apache-2.0", "Apache-9.0"))
    age(changing.folder)
    result = changing.shell.run("list", "--kind", "scorer")
    assert result.built_index
    assert "kit-edited" in result.stdout
    assert "Apache-9.0" in changing.shell.run("catalogue").stdout
    changing.restore()
    assert changing.shell.run("list").built_index


@pytest.mark.slow
def test_a_plugin_that_failed_to_import_is_tried_again_after_a_change(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.site.add("kit-late", "import kit_late_library\n" + scorer("kit-late"))
    age(environment.folder)
    assert "kit_late_library" in environment.shell.run("plugins").stdout
    assert environment.shell.has_current_index()
    library = environment.folder / "kit_late_library.py"
    library.write_text("raise RuntimeError('first')")
    age(environment.folder)
    assert "RuntimeError: first" in environment.shell.run("plugins").stdout
    assert environment.shell.has_current_index()
    library.write_text("")
    assert not environment.shell.has_current_index()


@pytest.mark.slow
def test_an_index_is_not_kept_shortly_after_a_change(tmp_path: Path) -> None:
    """A file may change again within the resolution of file times."""
    environment = Environment(tmp_path)
    touch = "import os; os.utime(__file__)\n"
    environment.site.add("kit-new", touch + scorer("kit-new"))
    age(environment.folder)
    assert "kit-new" in environment.shell.run("list").stdout
    assert environment.shell.index_files == []


@pytest.mark.slow
def test_two_processes_build_at_the_same_time(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    processes = [shell.start("list", "--json") for _ in range(2)]
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0] == outputs[1]
    assert len(shell.index_files) == 1
    assert not shell.run("list").built_index


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    result = Shell(tmp_path).run("-v", "list", "--kind", "scorer")
    assert "additive" in result.stdout
    assert "cannot write" in result.stderr


@pytest.mark.parametrize("data", [None, 7, "text", [], {}, {"fingerprint": {}, "index": {}}])
def test_an_index_with_other_content_is_built_again(
    data: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = index_file(environment())
    assert file is not None
    assert write_data(file, data)
    names = [(c.kind, c.name) for c in load_index().components()]
    assert names == [(e.kind, e.name) for e in default_registry().components()]


def test_the_cache_directory_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/kit")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == Path("/home/kit/.cache/attention-zoo")
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_folder() == Path("/home/kit/Library/Caches/attention-zoo")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    monkeypatch.setattr("sys.platform", "win32")
    assert cache_folder() == Path("/local/attention-zoo")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/attention-zoo")


def test_a_component_that_cannot_be_described_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ZOO_PLUGINS", raising=False)
    site = Site(tmp_path / "site", monkeypatch)
    odd = (
        "class Odd:\n    def __repr__(self): raise OSError('gone')\n"
        "class Other(Plain):\n    name = 'kit-other'\n    paper = 2015\n"
        "    def __init__(self, *, size: int = Odd()): super().__init__()\n"
    )
    site.add("kit-odd", scorer("kit-good", odd, result="[Plain, Other]"))
    (plugin,) = (p for p in load_index().plugins if p.distribution == "kit-odd")
    assert [component.name for component in plugin.components] == ["kit-good"]
    assert "kit-other" in plugin.errors[0]
    assert plugin.status == "error"


def test_empty_lists_and_names_of_maps_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        empty = replace(load_index(), plugins=())
        changed.setattr("zoo.cli.index.load_index", lambda: empty)
        parts = CliRunner().invoke(app, ["list", "--kind", "part"])
    assert parts.output == "no installed plugin has components of kind 'part'\n"
    shown = CliRunner().invoke(app, ["show", "llama2c"])
    assert str(shown.exception).endswith("'llama2c' is a map, used by 'zoo import --map llama2c'")
