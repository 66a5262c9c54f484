"""Atomic replacement of the files of an artifact.

The model of a directory is its `model.safetensors` or, without that file, the shards listed in its
index. A single file is replaced by one rename. For shards, new shards get names that the old index
does not use, then the index is replaced, then the old shards are removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from zoo.artifact.layout import MAX_HEADER
from zoo.artifact.mapped_file import INDEX, SINGLE_FILE, ArtifactFile, read_index
from zoo.errors import ArtifactError
from zoo.files import (
    atomic_write,
    fsync_path,
    lock_dir,
    permissions,
    replace_file,
    staging_dir,
)

_SHARD = re.compile(r"model-([0-9a-f]{8}-)?\d{5}-of-\d{5}\.safetensors")


def write_single_file(target: Path, write: Callable[[Path], object]) -> None:
    """Write one file. The shards of a directory whose model it replaces are removed."""
    folder = target.parent
    with atomic_write(target) as temp_path:
        write(temp_path)
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
    """Write shards and their index into a directory, which is created if it does not exist.

    Args:
        shard_of: the number of the shard of each tensor.
        write: writes the files and returns the metadata of the index.
    """
    if folder.is_dir() and not _is_zoo_model(folder):
        raise ArtifactError(
            f"{folder} contains a model of another library or an incomplete model; choose another "
            "directory or remove it first"
        )
    if count == 1:
        with _ensure_directory(folder):
            write_single_file(folder / SINGLE_FILE, lambda temp_path: write([temp_path]))
        return
    with _ensure_directory(folder), staging_dir(folder / "model") as staging:
        new = [staging / str(number) for number in range(count)]
        index_metadata = write(new)
        mode = _model_permissions(folder)
        for file in new:
            fsync_path(file, mode)
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
            "weight_map": {n: names[number] for n, number in shard_of.items()},
        }
        text = json.dumps(index, indent=2)
        if len(text) > MAX_HEADER:
            raise ValueError(
                f"its index would have {len(text):,} bytes; at most {MAX_HEADER:,} are allowed"
            )
        (staging / INDEX).write_text(text, encoding="utf-8")
        fsync_path(staging / INDEX, _model_permissions(folder))
        replace_file(staging / INDEX, folder / INDEX)
        fsync_path(folder)

    count = len(new)
    final_names = [f"model-{n + 1:05}-of-{count:05}.safetensors" for n in range(count)]
    token = secrets.token_hex(4)
    names = [name.replace("model-", f"model-{token}-") for name in final_names]
    if not any(os.path.lexists(folder / name) for name in final_names):
        names = final_names
    try:
        for file, name in zip(new, names, strict=True):
            replace_file(file, folder / name)
        fsync_path(folder)
        write_index(names)
    except BaseException:
        if sorted(names) != _indexed_shards(folder):
            _remove_files(folder, names)
        raise
    (folder / SINGLE_FILE).unlink(missing_ok=True)  # it would take precedence over the index
    _remove_files(folder, sorted(set(_list_shards(folder)) - set(names)))
    if names != final_names:
        # Link the usual names to the same files; without links the names with the token stay.
        with contextlib.suppress(OSError):
            for name, final in zip(names, final_names, strict=True):
                os.link(folder / name, folder / final)
            write_index(final_names)
        _remove_files(folder, sorted(set(_list_shards(folder)) - set(_indexed_shards(folder))))


def _is_zoo_model(folder: Path) -> bool:
    """Return whether a directory contains no model, or one written by this library."""
    try:
        if os.path.lexists(folder / SINGLE_FILE):
            ArtifactFile(folder / SINGLE_FILE)
        if os.path.lexists(folder / INDEX):
            return read_index(folder / INDEX)[1] is not None
    except ArtifactError:
        return False
    return True


def _model_permissions(folder: Path) -> int | None:
    """Return the permissions of the model in a directory, or None if it has none."""
    single = permissions(folder / SINGLE_FILE)
    return permissions(folder / INDEX) if single is None else single


def _list_shards(folder: Path) -> list[str]:
    """Return the shards in a directory, including those that are not in its index."""
    named = (entry for entry in folder.iterdir() if _SHARD.fullmatch(entry.name))
    return sorted(entry.name for entry in named if entry.is_file())


def _indexed_shards(folder: Path) -> list[str]:
    """Return the shards in the index of a directory, or an empty list without a valid index."""
    try:
        return sorted(set(read_index(folder / INDEX)[0].values()))
    except ArtifactError:
        return []


def _remove_files(folder: Path, names: Sequence[str]) -> None:
    """Remove files that are no longer used; on Windows, those of a loaded model stay."""
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(folder / name)
    fsync_path(folder)


@contextlib.contextmanager
def _ensure_directory(folder: Path) -> Iterator[None]:
    """Create a directory, and remove it at the end if it is new and empty."""
    existed = folder.is_dir()
    folder.mkdir(exist_ok=True)
    fsync_path(folder.parent)
    try:
        yield
    finally:
        if not existed:
            with contextlib.suppress(OSError):
                folder.rmdir()
