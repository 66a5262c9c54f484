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

from zoo.artifact.mapped_file import INDEX, SINGLE, File, read_index
from zoo.errors import ArtifactError
from zoo.files import alone_in, replacing, room_for, to_disk

_SHARD = re.compile(r"model-([0-9a-f]{8}-)?\d{5}-of-\d{5}\.safetensors")


def put_single(target: Path, write: Callable[[Path], object]) -> None:
    """One file; the shards of a directory whose model it now is are removed."""
    with replacing(target) as beside:
        write(beside)
    folder = target.parent
    if target.name == SINGLE and os.path.lexists(folder / INDEX) and _is_ours(folder):
        with alone_in(folder):
            _remove(folder, [INDEX])
            _remove(folder, _shards_in(folder))


def put_shards(
    folder: Path,
    owners: Mapping[str, int],
    count: int,
    write: Callable[[Sequence[Path]], Mapping[str, object]],
) -> None:
    """Shards and their index into a directory, which is made if need be.

    ``write`` fills the files it is given and returns what the index says of all of them.
    """
    if folder.is_dir() and not _is_ours(folder):
        raise ArtifactError(
            f"{folder} holds a model that is not the zoo's, or not whole; choose another "
            "directory, or remove it first"
        )
    if count == 1:
        with _made(folder):
            put_single(folder / SINGLE, lambda beside: write([beside]))
        return
    with _made(folder), room_for(folder / "model") as room:
        new = [room / str(number) for number in range(count)]
        about = write(new)
        for file in new:
            to_disk(file)
        with alone_in(folder):
            _swap(folder, room, new, owners, about)


def _swap(
    folder: Path,
    room: Path,
    new: Sequence[Path],
    owners: Mapping[str, int],
    about: Mapping[str, object],
) -> None:
    def point_to(names: Sequence[str]) -> None:
        index = {"metadata": dict(about), "weight_map": {n: names[at] for n, at in owners.items()}}
        (room / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")
        to_disk(room / INDEX)
        os.replace(room / INDEX, folder / INDEX)
        to_disk(folder)

    count = len(new)
    wanted = [f"model-{n + 1:05}-of-{count:05}.safetensors" for n in range(count)]
    token = secrets.token_hex(4)
    names = [name.replace("model-", f"model-{token}-") for name in wanted]
    if not set(wanted) & set(_shards_in(folder)):
        names = wanted
    try:
        for file, name in zip(new, names, strict=True):
            os.replace(file, folder / name)
        to_disk(folder)
        point_to(names)
    except BaseException:
        if sorted(names) != _named_by(folder):
            _remove(folder, names)
        raise
    _remove(folder, [SINGLE])
    _remove(folder, sorted(set(_shards_in(folder)) - set(names)))
    if names != wanted:
        # The same files by their usual names; where a disk has no links, the others stay.
        with contextlib.suppress(OSError):
            for name, final in zip(names, wanted, strict=True):
                os.link(folder / name, folder / final)
            point_to(wanted)
        _remove(folder, sorted(set(_shards_in(folder)) - set(_named_by(folder))))


def _is_ours(folder: Path) -> bool:
    """Whether what a directory holds as its model, if anything, was written by the zoo."""
    try:
        if os.path.lexists(folder / SINGLE):
            File(folder / SINGLE)
        if os.path.lexists(folder / INDEX):
            return read_index(folder / INDEX)[1] is not None
    except ArtifactError:
        return False
    return True


def _shards_in(folder: Path) -> list[str]:
    """Files by the names of shards, also those that a killed process never listed."""
    return sorted(entry.name for entry in folder.iterdir() if _SHARD.fullmatch(entry.name))


def _named_by(folder: Path) -> list[str]:
    """The shards that the index of a directory names, if it has a readable one."""
    try:
        return sorted(set(read_index(folder / INDEX)[0].values()))
    except ArtifactError:
        return []


def _remove(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder / name)
    to_disk(folder)


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """The directory, made if it is not there, and removed again if it stays empty."""
    existed = folder.is_dir()
    folder.mkdir(exist_ok=True)
    to_disk(folder.parent)
    try:
        yield
    finally:
        if not existed:
            with contextlib.suppress(OSError):
                folder.rmdir()
