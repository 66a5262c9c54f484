"""The file that keeps the index in the user's cache directory."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo.about import DISTRIBUTION
from zoo.files import atomic_write, read_limited, user_cache

MAX_BYTES = 64_000_000
"""A larger file is not read."""
MAX_FILES = 8
"""Index files kept; the oldest are removed."""


def cache_folder() -> Path | None:
    """Return the folder for index files, or None if the user has no cache directory."""
    parent = user_cache()
    return parent / DISTRIBUTION if parent else None


def index_file(environment: Mapping[str, Any]) -> Path | None:
    """Return the file for an environment."""
    folder = cache_folder()
    key = hashlib.sha256(json.dumps(environment).encode()).hexdigest()[:16]
    return folder / f"index-{key}.json" if folder else None


def read_data(file: Path) -> Any:
    """Return the data of an index file, or None if it is missing, damaged or too large."""
    try:
        with open(file, "rb") as opened:
            digest, _, payload = read_limited(opened, MAX_BYTES).partition(b"\n")
        if len(payload) > MAX_BYTES or digest.decode() != hashlib.sha256(payload).hexdigest():
            return None
        return json.loads(payload)
    except (OSError, ValueError, RecursionError):
        return None


def write_data(file: Path, data: Any) -> bool:
    """Write an index file atomically; return False if the cache directory is not writable."""
    payload = json.dumps(data, separators=(",", ":")).encode()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_write(file) as temp_path:
            temp_path.write_bytes(hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
    except OSError:
        return False
    _remove_oldest(file.parent)
    return True


def _remove_oldest(folder: Path) -> None:
    with contextlib.suppress(OSError):
        files = sorted(folder.glob("index-*.json"), key=lambda f: f.stat().st_mtime, reverse=True)
        for file in files[MAX_FILES:]:
            file.unlink(missing_ok=True)
