"""Everything that writes files replaces regular files only, and keeps their permissions."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from artifact_kit import REGISTRY, TIED
from view_kit import text_view

from zoo.artifact import save
from zoo.cli.index.store import write_data
from zoo.cli.schema import command as write_schema
from zoo.errors import ZooError
from zoo.files import atomic_write
from zoo.heatmap import Heatmap, save_png
from zoo.hub.cache import Cache
from zoo.hub.lock_file import LOCK_FILE, Pin, write_pin
from zoo.hub.publish import write_model_card
from zoo.hub.reference import Reference
from zoo.hub.tree import RepoFile, save_tree
from zoo.scaffold import write_plugin
from zoo.spec.composition import compose
from zoo_exchange.export_plan import ExportPlan
from zoo_exchange.mapping import TensorPlan
from zoo_inspect.page import write_page
from zoo_word2vec.vector_files import write_vectors

Writer = Callable[[Path], object]
SHARD = "model-00001-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


def write_text(path: Path) -> None:
    with atomic_write(path) as temp_path:
        temp_path.write_text("new")


def save_model(path: Path) -> None:
    save(compose(TIED, registry=REGISTRY), path)


def save_shards(path: Path) -> None:
    save(compose(TIED, registry=REGISTRY), path.parent, shard_bytes=180)


def write_card(path: Path) -> None:
    weights = path.with_name("model.safetensors")
    if not weights.exists():
        save(compose("bahdanau-reversal"), weights)
    write_model_card(path.parent, "a/b")


def write_heatmap(path: Path) -> None:
    pytest.importorskip("matplotlib")
    save_png([Heatmap(torch.eye(2), ["a", "b"], ["c", "d"])], path, title="weights")


def write_ref(path: Path) -> None:
    Cache("a/b", path.parents[2]).save_ref(path.name, "1" * 40)


# The name of the file that each writer writes.
FILES: dict[str, tuple[Writer, str]] = {
    "atomic_write": (write_text, "file"),
    "zoo.save": (save_model, "model.safetensors"),
    "shards": (save_shards, INDEX),
    "model card": (write_card, "README.md"),
    "zoo.lock": (lambda p: write_pin(Reference("a/b"), Pin("1" * 40), p.parent), LOCK_FILE),
    "word vectors": (
        lambda p: write_vectors(p, ["a"], np.ones((1, 2), dtype=np.float32), "glove"),
        "vectors.txt",
    ),
    "heatmap": (write_heatmap, "weights.png"),
    "page": (lambda p: write_page(text_view(), p), "attention.html"),
    "zoo schema": (write_schema, "schema.json"),
}
# These continue without the file, because it is a cache.
CACHES: dict[str, tuple[Writer, str]] = {
    "index": (lambda p: write_data(p, {}), "index-1.json"),
    "file list": (lambda p: save_tree(p, {}), "1.json"),
    "branch": (write_ref, "models--a--b/refs/main"),
}
FOLDERS: dict[str, tuple[Writer, str]] = {
    "export": (lambda p: ExportPlan(TensorPlan([]), torch.empty).write(p), "exported"),
    "new plugin": (lambda p: write_plugin("mine", "scorer", p.parent), "zoo-mine"),
    "folder of shards": (
        lambda p: save(compose(TIED, registry=REGISTRY), p, shard_bytes=180),
        "folder",
    ),
}


@contextlib.contextmanager
def special_file(path: Path, kind: str) -> Iterator[None]:
    """Create something that is not a regular file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        if kind == "pipe":
            os.mkfifo(path)
            # With a reader, a writer that opens the pipe does not wait.
            stack.callback(os.close, os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        elif kind == "socket":
            bound = stack.enter_context(socket.socket(socket.AF_UNIX))
            stack.enter_context(contextlib.chdir(path.parent))  # the length of a name is limited
            bound.bind(path.name)
        elif kind == "device":
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("creating a device needs privileges")
        elif kind == "link loop":
            path.symlink_to(path.name)
        elif kind == "linked pipe":
            os.mkfifo(path.with_name("pipe"))
            stack.callback(os.close, os.open(path.with_name("pipe"), os.O_RDONLY | os.O_NONBLOCK))
            path.symlink_to("pipe")
        yield


KINDS = ["pipe", "socket", "device", "link loop", "linked pipe"]


def states(folder: Path) -> dict[str, tuple[int, int]]:
    """Return kind and inode of everything below a directory."""
    paths = sorted(folder.rglob("*"))
    found = {str(p.relative_to(folder)): p.lstat() for p in paths}
    return {name: (stat.S_IFMT(one.st_mode), one.st_ino) for name, one in found.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", {**FILES, **FOLDERS})
def test_special_files_are_not_replaced(tmp_path: Path, name: str, kind: str) -> None:
    write, file = {**FILES, **FOLDERS}[name]
    if name == "model card":
        save(compose("bahdanau-reversal"), tmp_path / "model.safetensors")
    with special_file(tmp_path / file, kind):
        before = states(tmp_path)
        with pytest.raises(ZooError if name != "atomic_write" else OSError) as caught:
            write(tmp_path / file)
        after = states(tmp_path)
    assert {path: after[path] for path in before} == before
    assert file in str(caught.value) or name == "shards"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CACHES)
def test_special_files_in_a_cache_are_not_replaced(tmp_path: Path, name: str, kind: str) -> None:
    write, file = CACHES[name]
    with special_file(tmp_path / file, kind):
        before = states(tmp_path)
        write(tmp_path / file)
        assert states(tmp_path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_special_file_with_the_name_of_a_shard_stays(tmp_path: Path, kind: str) -> None:
    with special_file(tmp_path / SHARD, kind):
        before = states(tmp_path)
        save_shards(tmp_path / INDEX)
        save_shards(tmp_path / INDEX)
        after = states(tmp_path)
    assert {path: after[path] for path in before} == before


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_special_file_with_the_name_of_a_blob_stays(tmp_path: Path, kind: str) -> None:
    cache, file = Cache("a/b", tmp_path), RepoFile("x.json", 3, "1" * 40)
    with special_file(cache.blob(file), kind):
        before = states(tmp_path)
        with pytest.raises(OSError, match="not a regular file"):
            cache.discard(file)
        assert states(tmp_path) == before


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664], ids=oct)
@pytest.mark.parametrize("name", FILES)
def test_replaced_file_keeps_its_permissions(tmp_path: Path, name: str, mode: int) -> None:
    write, file = FILES[name]
    write(tmp_path / file)
    for path in tmp_path.iterdir():
        path.chmod(mode)
    with (tmp_path / file).open("rb") as old:  # an open file keeps its inode number
        if name == "zoo.lock":  # written only if a pin changes
            write_pin(Reference("c/d"), Pin("2" * 40), tmp_path)
        else:
            write(tmp_path / file)
        assert (tmp_path / file).stat().st_ino != os.fstat(old.fileno()).st_ino
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {mode}


@pytest.mark.parametrize("name", {**FILES, **FOLDERS})
def test_new_files_follow_the_umask(tmp_path: Path, name: str) -> None:
    write, file = {**FILES, **FOLDERS}[name]
    previous = os.umask(0o027)
    try:
        write(tmp_path / file)
    finally:
        os.umask(previous)
    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o750 if path.is_dir() else 0o640), path


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("shards", "model card")])
@pytest.mark.parametrize("exists", [True, False], ids=["existing", "new"])
def test_symbolic_links_are_followed(tmp_path: Path, name: str, exists: bool) -> None:
    write, file = FILES[name]
    (tmp_path / "real").mkdir()
    if exists:
        write(tmp_path / "real" / file)
    (tmp_path / file).symlink_to(tmp_path / "real" / file)
    write(tmp_path / file)
    assert (tmp_path / file).is_symlink()
    assert stat.S_ISREG((tmp_path / "real" / file).lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["real", file])
