"""Encoded examples in memory or, if they are many, in files of the user's cache directory."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from zoo.about import version
from zoo.data.archive import find_archive
from zoo.data.encoding import Chunk, ProgressFunction, Skipped, encode_chunks
from zoo.data.files import cache_folder, expand_path
from zoo.data.reader import ExampleReader
from zoo.data.token_table import EncodedExamples, write_chunks
from zoo.errors import DataError, ZooError
from zoo.files import (
    atomic_write,
    fsync_path,
    lock_dir,
    os_error_message,
    replace_file,
    staging_dir,
)
from zoo.interfaces import Dataset, Model
from zoo.registry.blueprint import Blueprint

FORMAT = 2
MAX_IN_MEMORY = 2**25
"""Largest size of encoded examples that are kept in memory, in bytes."""
SAMPLE = 64
"""Number of examples whose encoding is part of the fingerprint."""
_META = "meta.json"


def encode_examples(
    reader: ExampleReader,
    skipped: Skipped,
    *,
    fingerprint: str | None,
    empty: bool = False,
    progress: ProgressFunction | None = None,
) -> EncodedExamples:
    """Return the encoded examples of a dataset.

    Many examples are written to a folder of the cache, in a stream, and memory-mapped. Processes
    that need the same folder wait until one of them has written it.

    Args:
        fingerprint: name of the folder in the cache; None: a temporary folder.
        empty: whether texts without tokens are valid.
        progress: called after each chunk.
    """
    folder = None if fingerprint is None else cache_folder() / fingerprint
    cached = None if folder is None else _open_cached(folder, skipped)
    if cached is not None:
        return cached
    chunks = encode_chunks(reader, skipped, empty=empty, progress=progress)
    first: list[Chunk] = []
    size = 0
    for chunk in chunks:
        first.append(chunk)
        size += sum(array.nbytes for array in (*chunk.tokens.values(), *chunk.lengths.values()))
        if size > MAX_IN_MEMORY:
            rest = itertools.chain(_drain(first), chunks)
            return _write(folder, rest, skipped)
    return EncodedExamples.from_chunks(first, list(reader.preprocessors))


def _drain(chunks: list[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks and free each before the next."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()


def _write(folder: Path | None, chunks: Iterator[Chunk], skipped: Skipped) -> EncodedExamples:
    target = folder or Path(tempfile.gettempdir())
    try:
        if folder is None:
            target = Path(tempfile.mkdtemp(prefix="zoo-tokens-"))
            encoded = EncodedExamples.open(target, write_chunks(target, chunks))
            weakref.finalize(encoded, _remove, target, os.getpid())
            return encoded
        folder.mkdir(parents=True, exist_ok=True)
        with lock_dir(folder):
            cached = _open_cached(folder, skipped)
            return cached or _write_cached(folder, chunks, skipped)
    except OSError as error:
        raise ZooError(
            f"the encoded examples cannot be written to {target}: {os_error_message(error)}; set "
            "XDG_CACHE_HOME (or TMPDIR) to a folder with more space"
        ) from None


def _write_cached(folder: Path, chunks: Iterator[Chunk], skipped: Skipped) -> EncodedExamples:
    """Write the files, and last the description that makes the folder valid."""
    with staging_dir(folder / "files") as staging:
        dtypes = write_chunks(staging, chunks)
        sizes = {path.name: path.stat().st_size for path in staging.iterdir()}
        for name in sizes:
            fsync_path(staging / name)
            replace_file(staging / name, folder / name)
    meta = {"dtypes": dtypes, "sizes": sizes, "skipped": skipped.counts}
    with atomic_write(folder / _META) as temporary:
        temporary.write_text(json.dumps(meta), encoding="utf-8")
    return EncodedExamples.open(folder, dtypes)


def _open_cached(folder: Path, skipped: Skipped) -> EncodedExamples | None:
    """Return the examples in a folder, or None if it is not complete."""
    try:
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
        if any((folder / name).stat().st_size != size for name, size in meta["sizes"].items()):
            return None
    except FileNotFoundError:
        return None
    skipped.counts.clear()
    skipped.counts.update(meta["skipped"])
    return EncodedExamples.open(folder, meta["dtypes"])


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # worker processes have copies of the object
        shutil.rmtree(folder, ignore_errors=True)


def fingerprint(
    blueprint: Blueprint[Dataset],
    model: Model,
    reader: ExampleReader,
    skipped: Skipped,
    *,
    empty: bool,
) -> str | None:
    """Return a hash of all that the encoded examples depend on, or None if it is not known.

    These are the parameters of dataset and preprocessors, their versions, the stored texts, size
    and times of each file, and as a test of them the encoding of the first examples.
    """
    section = (model.spec or {}).get("preprocessing") or {}
    files = _files(blueprint.resolve())
    if blueprint.entry is None or not files or any(key not in section for key in reader.contents):
        return None
    content = {
        "format": FORMAT,
        "versions": [
            version(),
            blueprint.entry.distribution_version,
            blueprint.entry.cls.version,
            *(item.version for item in reader.preprocessors.values()),
        ],
        "dataset": blueprint.resolve(),
        "files": files,
        "evaluation": reader.evaluation,
        "bad_data": skipped.bad_data,
        "empty": empty,
        "preprocessing": {key: section[key] for key in reader.contents},
        "stored": {key: item.stored() for key, item in reader.preprocessors.items()},
        "transforms": [key for key in reader.contents if reader.transforms(key)],
        "schema": {key: reader.schema[key] for key in reader.contents},
        "examples": len(reader.examples),
        "sample": _sample(reader),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _files(value: Any) -> list[tuple[str, int, int, int]]:
    """Return path, size and times of the files that are named in parameters.

    A program can set the time of the content, for example to that of the file it replaces, but not
    the time of the last change.
    """
    if isinstance(value, Mapping):
        return [file for item in value.values() for file in _files(item)]
    if isinstance(value, (list, tuple)):
        return [file for item in value for file in _files(item)]
    if not isinstance(value, str):
        return []
    try:
        path = expand_path(value).absolute()
        path = find_archive(path) or path
        stat = path.stat()
    except (DataError, OSError, ValueError):  # not a path
        return []
    if not path.is_file():
        return []
    return [(str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)]


def _sample(reader: ExampleReader) -> list[Any]:
    found: list[Any] = []
    for index in range(min(SAMPLE, len(reader.examples))):
        try:
            found.append({key: array.tolist() for key, array in reader.encode(index).items()})
        except DataError as error:
            found.append(error.message)
    return found
