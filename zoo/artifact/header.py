"""What an artifact says of itself: the words in the header, read and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoo.artifact.layout import Layout, hash_json, parse_json
from zoo.errors import ArtifactError

FORMAT = "2"
SUPPORTED_FORMATS = ("1", FORMAT)
"""Files of format 1 have no hashes, no digest and no probe; a file of format 2 has them all."""
SHARED_KEYS = ("spec", "lock", "places", "provenance", "tokenizer", "probe")
"""What a sharded artifact says once, in its first shard."""

_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Header:
    """Everything in an artifact but the weights.

    Attributes:
        component_paths: where each component stands, in the spec (path) and in the model (at).
        tensors: dtype and shape by name.
        hashes: the sha256 of each tensor's bytes; None in files of format 1.
        probe: a small input and what the model made of it, or why there is none.
        files: the files the weights lie in, with their sizes.
        identity: a hash of the words above and of all weights; None in files of format 1.
    """

    path: Path
    format: str
    spec: dict[str, Any]
    providers: list[dict[str, Any]]
    component_paths: list[dict[str, Any]]
    provenance: dict[str, Any]
    tokenizer: dict[str, str]
    probe: dict[str, Any] | None
    hashes: dict[str, str] | None
    tensors: dict[str, tuple[str, tuple[int, ...]]]
    files: tuple[tuple[str, int], ...]
    identity: str | None

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)

    @property
    def dtypes(self) -> list[str]:
        return sorted({dtype for dtype, _ in self.tensors.values()})

    def as_json(self) -> dict[str, Any]:
        hashes = self.hashes or {}
        return {
            "file": str(self.path),
            "format": self.format,
            "identity": self.identity,
            "bytes": self.bytes,
            "files": [{"name": name, "bytes": size} for name, size in self.files],
            "dtypes": self.dtypes,
            "spec": self.spec,
            "lock": self.providers,
            "places": self.component_paths,
            "provenance": self.provenance,
            "tokenizer": sorted(self.tokenizer),
            "hashes": self.hashes is not None,
            "probe": self.probe,
            "tensors": [
                {"name": name, "dtype": dtype, "shape": list(shape), "sha256": hashes.get(name)}
                for name, (dtype, shape) in self.tensors.items()
            ],
        }


def check_digest(path: Path, layout: Layout) -> None:
    """Refuse a header that is not the one that was written."""
    words = layout.metadata
    found = words.get("zoo")
    if found not in SUPPORTED_FORMATS:
        if found:
            told = f"is of format {found}; the zoo reads formats {' and '.join(SUPPORTED_FORMATS)}"
        else:
            told = (
                "holds no spec, so it is no model of the zoo; 'zoo import' brings in those of "
                "other libraries"
            )
        raise ArtifactError(f"{path} {told}")
    if found == FORMAT and "digest" not in words:
        raise ArtifactError(f"{path}: its header lacks the digest that files of format 2 have")
    if "digest" in words and words["digest"] != layout.digest():
        raise ArtifactError(
            f"{path}: its header was changed after it was written (the digest does not match)"
        )


def read_hashes(path: Path, layout: Layout) -> dict[str, str] | None:
    """The hash of each tensor in one file; None if the file is of a format without."""
    if layout.metadata["zoo"] == "1":
        return None
    try:
        hashes = parse_json(layout.metadata["hashes"])
    except (KeyError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{path}: the hashes in its header cannot be read: {error}") from None
    if not isinstance(hashes, dict) or hashes.keys() != layout.tensors.keys():
        raise ArtifactError(f"{path}: the hashes in its header are not those of its tensors")
    if not all(isinstance(h, str) and _SHA256.fullmatch(h) for h in hashes.values()):
        raise ArtifactError(f"{path}: the hashes in its header are no hashes")
    return hashes


def header_from_metadata(
    path: Path,
    words: Mapping[str, str],
    layouts: Sequence[Layout],
    hashes: dict[str, str] | None,
    files: Sequence[tuple[str, int]],
) -> Header:
    """The header that the words of the first file and the layouts of all files make."""
    try:
        spec, lock = parse_json(words["spec"]), parse_json(words["lock"])
        provenance = parse_json(words.get("provenance", "{}"))
        tokenizer = parse_json(words.get("tokenizer", "{}"))
        places, probe = (
            parse_json(words.get("places", "[]")),
            parse_json(words.get("probe", "null")),
        )
    except (KeyError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{path}: the header's spec or lock cannot be read: {error}") from None
    rows = isinstance(lock, list) and all(_is_lock_row(row) for row in lock)
    placed = isinstance(places, list) and all(_is_place(place) for place in places)
    dicts = all(isinstance(part, dict) for part in (spec, provenance, tokenizer))
    known = dicts and rows and placed and _is_probe(probe)
    if not known or not all(isinstance(text, str) for text in tokenizer.values()):
        raise ArtifactError(f"{path}: the header's spec, lock or provenance has not the right form")
    if "extends" in spec:
        raise ArtifactError(
            f"{path}: the header's spec builds on another; a saved spec is complete"
        )
    tensors = {
        name: (stored.dtype, stored.shape)
        for layout in layouts
        for name, stored in sorted(layout.tensors.items())
    }
    return Header(
        path=path,
        format=words["zoo"],
        spec=spec,
        providers=lock,
        component_paths=places,
        provenance=provenance,
        tokenizer=tokenizer,
        probe=probe,
        hashes=hashes,
        tensors=tensors,
        files=tuple(files),
        identity=None if hashes is None else identity(words, hashes),
    )


def identity(words: Mapping[str, str], hashes: Mapping[str, str]) -> str:
    """One hash for the whole model: what it is and every weight, however it is cut into files."""
    return hash_json([{key: words[key] for key in SHARED_KEYS if key in words}, dict(hashes)])


def _is_lock_row(row: Any) -> bool:
    words = ("kind", "name", "plugin", "distribution", "distribution_version")
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(word), str) for word in words)
        and type(row.get("version")) is int
    )


def _is_place(place: Any) -> bool:
    return (
        isinstance(place, dict)
        and all(isinstance(place.get(word), str) for word in ("path", "kind", "type"))
        and isinstance(place.get("at"), list)
        and all(isinstance(prefix, str) for prefix in place["at"])
    )


def _is_probe(probe: Any) -> bool:
    if probe is None or (isinstance(probe, dict) and isinstance(probe.get("skipped"), str)):
        return True
    sides = [probe.get(side) for side in ("inputs", "outputs")] if isinstance(probe, dict) else []
    rows = [row for side in sides if isinstance(side, dict) for row in side.values()]
    whole = len(sides) == 2 and all(isinstance(side, dict) for side in sides)
    return whole and all(isinstance(row, dict) and "shape" in row for row in rows)
