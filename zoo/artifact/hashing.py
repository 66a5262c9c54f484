"""The sha256 of each tensor, against what the header says."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from zoo.artifact.mapped_file import ArtifactFile, open_artifact, resolve_path
from zoo.errors import ArtifactError

Progress = Callable[[int], None]
"""Told of bytes as they are done."""

_MAX_SHOWN = 8
_WORKERS = 4


def check_hashes(path: str | os.PathLike[str], progress: Progress | None = None) -> bool:
    """Whether every byte of an artifact, or of one shard, is the one that was written.

    False if it is of a format without hashes; ArtifactError if something differs.
    """
    place = resolve_path(path)
    files = open_artifact(place).files if place.suffix == ".json" else (ArtifactFile(place),)
    return check_files(files, progress)


def check_files(files: Sequence[ArtifactFile], progress: Progress | None = None) -> bool:
    """The same for files that are open, so that what was checked is what is used."""
    tasks = [(file, name) for file in files for name in file.layout.tensors]
    if any(file.hashes is None for file in files):
        return False

    def is_intact(task: tuple[ArtifactFile, str]) -> bool:
        file, name = task
        return hashlib.sha256(file.raw(name)).hexdigest() == (file.hashes or {})[name]

    wrong: list[tuple[Path, str]] = []
    with ThreadPoolExecutor(min(_WORKERS, os.cpu_count() or 1)) as pool:
        try:
            for (file, name), good in zip(tasks, pool.map(is_intact, tasks), strict=True):
                if not good:
                    wrong.append((file.path, name))
                if progress:
                    progress(len(file.raw(name)))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # whoever interrupts need not wait
            raise
    if wrong:
        more = f"\n  and {len(wrong) - _MAX_SHOWN} more" if len(wrong) > _MAX_SHOWN else ""
        listed = "".join(f"\n  {path.name}: {name}" for path, name in wrong[:_MAX_SHOWN])
        raise ArtifactError(
            f"{wrong[0][0].parent if len(files) > 1 else files[0].path}: weights were changed "
            f"after they were written (their sha256 does not match):{listed}{more}"
        )
    return True
