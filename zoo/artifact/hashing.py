"""Comparison of the sha256 of each tensor with the header."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from zoo.artifact.layout import tensor_bytes
from zoo.artifact.mapped_file import ArtifactFile, open_artifact, resolve_path
from zoo.errors import ArtifactError

HashProgress = Callable[[int], None]
"""Called with the number of bytes processed since the last call."""

_MAX_SHOWN = 8
_WORKERS = 4


def check_hashes(path: str | os.PathLike[str], progress: HashProgress | None = None) -> bool:
    """Check the weights of an artifact, or of one shard, against the hashes in its header.

    Returns False for format 1, which has no hashes. Raises ArtifactError if a hash differs.
    """
    location = resolve_path(path)
    is_index = location.suffix == ".json"
    files = open_artifact(location).files if is_index else (ArtifactFile(location),)
    return check_files(files, progress)


def check_files(files: Sequence[ArtifactFile], progress: HashProgress | None = None) -> bool:
    """Check open files, as `check_hashes` does, so that the bytes checked are the bytes used."""
    tasks = [(file, name) for file in files for name in file.layout.tensors]
    if any(file.hashes is None for file in files):
        return False

    def matches(task: tuple[ArtifactFile, str]) -> bool:
        file, name = task
        digest = hashlib.sha256(tensor_bytes(file.tensor(name))).hexdigest()
        return digest == (file.hashes or {})[name]

    changed: list[tuple[Path, str]] = []
    with ThreadPoolExecutor(min(_WORKERS, os.cpu_count() or 1)) as pool:
        try:
            for (file, name), intact in zip(tasks, pool.map(matches, tasks), strict=True):
                if not intact:
                    changed.append((file.path, name))
                if progress:
                    progress(file.layout.tensors[name].nbytes)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C does not wait for the queue
            raise
    if changed:
        more = f"\n  and {len(changed) - _MAX_SHOWN} more" if len(changed) > _MAX_SHOWN else ""
        listed = "".join(f"\n  {path.name}: {name}" for path, name in changed[:_MAX_SHOWN])
        raise ArtifactError(
            f"{changed[0][0].parent if len(files) > 1 else files[0].path}: weights changed after "
            f"they were saved; the sha256 does not match for:{listed}{more}"
        )
    return True
