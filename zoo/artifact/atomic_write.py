"""Finished files put in the place of old ones, so that at every moment one model is whole.

A directory's model is its ``model.safetensors``; without one, what its index names. A single file
is swapped by one rename. For shards that rename is the index's: new shards get names that the old
index does not use, then the index is replaced, then the old shards go.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from zoo.artifact.mapped_file import INDEX, SINGLE_FILE, ArtifactFile, read_index
from zoo.errors import ArtifactError
from zoo.files import atomic_write, fsync_path, lock_dir, staging_dir

_SHARD = re.compile(r"model-([0-9a-f]{8}-)?\d{5}-of-\d{5}\.safetensors")


def write_single_file(target: Path, write: Callable[[Path], object]) -> None:
    """One file; the shards of a directory whose model it now is are removed."""
    with atomic_write(target) as temp_path:
        write(temp_path)
    folder = target.parent
    if target.name == SINGLE_FILE and os.path.lexists(folder / INDEX) and _is_zoo_model(folder):
        with lock_dir(folder):
            _remove_files(folder, [INDEX])
            _remove_files(folder, _list_shards(folder))


def write_shards(
    folder: Path,
    shard_of: Mapping[str, int],
    count: int,
    write: Callable[[Sequence[Path]], Mapping[str, object]],
) -> None:
    """Shards and their index into a directory, which is made if need be.

    ``write`` fills the files it is given and returns what the index says of all of them.
    """
    if folder.is_dir() and not _is_zoo_model(folder):
        raise ArtifactError(
            f"{folder} holds a model that is not the zoo's, or not whole; choose another "
            "directory, or remove it first"
        )
    if count == 1:
        with _ensure_directory(folder):
            write_single_file(folder / SINGLE_FILE, lambda temp_path: write([temp_path]))
        return
    with _ensure_directory(folder), staging_dir(folder / "model") as staging:
        new = [staging / str(number) for number in range(count)]
        index_metadata = write(new)
        for file in new:
            fsync_path(file)
        with lock_dir(folder):
            _replace_shards(folder, staging, new, shard_of, index_metadata)


def _replace_shards(
    folder: Path,
    staging: Path,
    new: Sequence[Path],
    shard_of: Mapping[str, int],
    index_metadata: Mapping[str, object],
) -> None:
    def write_index(names: Sequence[str]) -> None:
        index = {
            "metadata": dict(index_metadata),
            "weight_map": {n: names[at] for n, at in shard_of.items()},
        }
        (staging / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")
        fsync_path(staging / INDEX)
        os.replace(staging / INDEX, folder / INDEX)
        fsync_path(folder)

    count = len(new)
    wanted = [f"model-{n + 1:05}-of-{count:05}.safetensors" for n in range(count)]
    token = secrets.token_hex(4)
    names = [name.replace("model-", f"model-{token}-") for name in wanted]
    if not set(wanted) & set(_list_shards(folder)):
        names = wanted
    try:
        for file, name in zip(new, names, strict=True):
            os.replace(file, folder / name)
        fsync_path(folder)
        write_index(names)
    except BaseException:
        if sorted(names) != _indexed_shards(folder):
            _remove_files(folder, names)
        raise
    _remove_files(folder, [SINGLE_FILE])
    _remove_files(folder, sorted(set(_list_shards(folder)) - set(names)))
    if names != wanted:
        # The same files by their usual names; where a disk has no links, the others stay.
        with contextlib.suppress(OSError):
            for name, final in zip(names, wanted, strict=True):
                os.link(folder / name, folder / final)
            write_index(wanted)
        _remove_files(folder, sorted(set(_list_shards(folder)) - set(_indexed_shards(folder))))


def _is_zoo_model(folder: Path) -> bool:
    """Whether what a directory holds as its model, if anything, was written by the zoo."""
    try:
        if os.path.lexists(folder / SINGLE_FILE):
            ArtifactFile(folder / SINGLE_FILE)
        if os.path.lexists(folder / INDEX):
            return read_index(folder / INDEX)[1] is not None
    except ArtifactError:
        return False
    return True


def _list_shards(folder: Path) -> list[str]:
    """Files by the names of shards, also those that a killed process never listed."""
    return sorted(entry.name for entry in folder.iterdir() if _SHARD.fullmatch(entry.name))


def _indexed_shards(folder: Path) -> list[str]:
    """The shards that the index of a directory names, if it has a readable one."""
    try:
        return sorted(set(read_index(folder / INDEX)[0].values()))
    except ArtifactError:
        return []


def _remove_files(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder / name)
    fsync_path(folder)


@contextlib.contextmanager
def _ensure_directory(folder: Path) -> Iterator[None]:
    """The directory, made if it is not there, and removed again if it stays empty."""
    existed = folder.is_dir()
    folder.mkdir(exist_ok=True)
    fsync_path(folder.parent)
    try:
        yield
    finally:
        if not existed:
            with contextlib.suppress(OSError):
                folder.rmdir()
