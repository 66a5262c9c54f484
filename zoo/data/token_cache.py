"""Encoded examples in memory or, if they are many, in files of the user's cache directory."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from zoo.about import version
from zoo.data.cache import CacheEntry, entry_name, read_entry, write_entry
from zoo.data.encoding import Chunk, ProgressFunction, Skipped, encode_chunks
from zoo.data.files import file_state
from zoo.data.named_files import named_paths
from zoo.data.reader import ExampleReader
from zoo.data.token_table import EncodedExamples, write_chunks
from zoo.errors import DataError
from zoo.interfaces import Dataset, Model
from zoo.registry.blueprint import Blueprint

FORMAT = 3
MAX_IN_MEMORY = 2**25
"""Largest size of encoded examples that are kept in memory, in bytes."""
SAMPLE = 64
"""Number of examples whose encoding is part of the fingerprint."""


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
    found = None if fingerprint is None else read_entry(fingerprint)
    if found is not None:
        return _open(found, skipped)
    chunks = encode_chunks(reader, skipped, empty=empty, progress=progress)
    first: list[Chunk] = []
    size = 0
    for chunk in chunks:
        first.append(chunk)
        size += sum(array.nbytes for array in (*chunk.tokens.values(), *chunk.lengths.values()))
        if size > MAX_IN_MEMORY:
            rest = itertools.chain(_drain(first), chunks)
            return _open(write_entry(fingerprint, partial(_write, rest, skipped)), skipped)
    return EncodedExamples.from_chunks(first, list(reader.preprocessors))


def _drain(chunks: list[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks and free each before the next."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()


def _write(chunks: Iterator[Chunk], skipped: Skipped, folder: Path) -> Mapping[str, Any]:
    return {"dtypes": write_chunks(folder, chunks), "skipped": skipped.counts}


def _open(entry: CacheEntry, skipped: Skipped) -> EncodedExamples:
    counts = dict(entry.description["skipped"])
    skipped.counts.clear()
    skipped.counts.update(counts)
    encoded = EncodedExamples.open(entry.folder, entry.description["dtypes"])
    weakref.finalize(encoded, entry.close)
    return encoded


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
    files = [path for path in named_paths(blueprint.resolve()) if path.is_file()]
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
        "files": [file_state(path) for path in files],
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
    return entry_name(content)


def _sample(reader: ExampleReader) -> list[Any]:
    found: list[Any] = []
    for index in range(min(SAMPLE, len(reader.examples))):
        try:
            found.append({key: array.tolist() for key, array in reader.encode(index).items()})
        except DataError as error:
            found.append(error.message)
    return found
