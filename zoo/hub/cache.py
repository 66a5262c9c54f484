"""The cache shared by all Hugging Face libraries: blobs by hash, snapshots by commit.

Files are downloaded to a temporary path, checked, and then renamed, so other processes never see an
incomplete file. A marker with the size and the times of a blob records that it was checked, so that
it is hashed only once.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from huggingface_hub import constants
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import WeakFileLock, tqdm

from zoo.errors import HubError, one_line
from zoo.files import (
    atomic_write,
    check_replaceable,
    os_error_message,
    remove_stale,
    replace_file,
    staging_dir,
    stat_key,
)
from zoo.hub import names
from zoo.hub.client import HubClient
from zoo.hub.tree import RepoFile

_log = logging.getLogger(__name__)

_LOCK_TIMEOUT = 600.0
_MIN_PROGRESS_BYTES = 1_000_000


class Cache:
    """The cache of one repository.

    Args:
        skip_hash_check: whether to accept cached files of the right size without hashing them.
    """

    def __init__(
        self,
        repo: str,
        folder: str | os.PathLike[str] | None = None,
        *,
        skip_hash_check: bool = False,
    ) -> None:
        self.root = Path(folder or constants.HF_HUB_CACHE)
        self.repo = repo
        self.skip_hash_check = skip_hash_check
        self.name = repo_folder_name(repo_id=repo, repo_type="model")
        self.folder = self.root / self.name

    def snapshot(self, commit: str) -> Path:
        return self.folder / "snapshots" / commit

    def tree(self, commit: str) -> Path:
        return self.folder / "trees" / f"{commit}.json"

    def blob(self, file: RepoFile) -> Path:
        return self.folder / "blobs" / file.oid

    def cached_commit(self, revision: str) -> str | None:
        """Return the commit that a branch or tag had at the last request."""
        try:
            commit = (self.folder / "refs" / revision).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return commit if names.is_commit(commit) else None

    def save_ref(self, revision: str, commit: str) -> None:
        """Store the commit of a branch or tag for offline use, if the cache is writable."""
        path = self.folder / "refs" / revision
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as temp_path:
                temp_path.write_text(commit)

    def contains(self, file: RepoFile, commit: str) -> bool:
        """Return whether the snapshot contains the file, with the expected hash."""
        pointer = self.snapshot(commit) / file.name
        try:
            return pointer.exists() and self._is_verified(file, pointer)
        except OSError:
            return False  # not readable, or removed by another process

    def discard(self, file: RepoFile) -> None:
        check_replaceable(self.blob(file))
        self.blob(file).unlink(missing_ok=True)

    def fetch(self, client: HubClient, file: RepoFile, commit: str, *, force: bool = False) -> None:
        """Add the file to the snapshot, from the cache or from the Hub."""
        try:
            with self._download_lock(file):
                blob = self.blob(file)
                if force or not blob.exists() or not self._is_verified(file, blob):
                    self.discard(file)  # also a link to a file that does not exist
                if not blob.exists():
                    self._download(client, file, commit)
                self._link_to_blob(file, commit)
        except OSError as error:
            raise HubError(
                f"{file.name} of {self.repo} cannot be stored in the cache {self.root}: "
                f"{os_error_message(error)}; set HF_HOME to use another directory"
            ) from None

    def _is_verified(self, file: RepoFile, path: Path) -> bool:
        """Return whether the file has the expected hash, from its marker or by hashing it."""
        state = path.stat()
        with contextlib.suppress(OSError, ValueError):
            if self._marker(file).read_text(encoding="ascii") == stat_key(state):
                return True
        if self.skip_hash_check:
            return state.st_size == file.size and stat.S_ISREG(state.st_mode)
        if not self._has_expected_hash(file, path):
            return False
        self._mark(file, state)
        return True

    def _has_expected_hash(self, file: RepoFile, path: Path) -> bool:
        state = path.stat()
        if state.st_size != file.size or not stat.S_ISREG(state.st_mode):
            return False
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, file.hasher).hexdigest() == file.oid

    def _mark(self, file: RepoFile, state: os.stat_result) -> None:
        """Record that a blob with this state has the expected hash, if the cache is writable."""
        marker = self._marker(file)
        with contextlib.suppress(OSError):
            marker.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(marker) as temp_path:
                temp_path.write_text(stat_key(state), encoding="ascii")

    def _marker(self, file: RepoFile) -> Path:
        return self.folder / ".zoo-checked" / file.oid

    def _download(self, client: HubClient, file: RepoFile, commit: str) -> None:
        """Download a file; a wrong hash is retried once."""
        _log.info("downloading %s of %s (%d bytes)", file.name, self.repo, file.size)
        self.blob(file).parent.mkdir(parents=True, exist_ok=True)
        if not any(self._try_download(client, file, commit) for _ in range(2)):
            raise HubError(
                f"{file.name} of {self.repo} at {commit[:12]} was downloaded twice, but does not "
                f"match its hash {file.oid[:12]}… and size {file.size:,}; nothing was stored"
            )

    def _try_download(self, client: HubClient, file: RepoFile, commit: str) -> bool:
        try:
            with atomic_write(self.blob(file)) as temp_path:
                with open(temp_path, "wb") as stream, _progress_bar(file) as bar:
                    write = partial(_write_chunk, file, stream, bar)
                    client.download(self.repo, commit, file.name, write)
                if not self._has_expected_hash(file, temp_path):
                    raise _HashMismatch
        except _HashMismatch:
            return False
        self._mark(file, self.blob(file).stat())  # the rename has changed its time
        return True

    def _link_to_blob(self, file: RepoFile, commit: str) -> None:
        """Link the file in the snapshot to its blob, or copy it where links are not possible."""
        pointer, blob = self.snapshot(commit) / file.name, self.blob(file)
        if pointer.exists() and pointer.samefile(blob):
            return
        remove_stale(blob)  # of a process that was killed after the rename
        pointer.parent.mkdir(parents=True, exist_ok=True)
        with staging_dir(pointer) as staging:
            temp_path = staging / "new"
            try:
                if constants.HF_HUB_DISABLE_SYMLINKS:
                    raise OSError
                temp_path.symlink_to(os.path.relpath(blob, pointer.parent))
            except OSError:
                shutil.copy2(blob, temp_path)
            replace_file(temp_path, pointer)

    @contextlib.contextmanager
    def _download_lock(self, file: RepoFile) -> Iterator[None]:
        """Let one process download a file while others wait. Only saves requests."""
        path = self.root / ".locks" / self.name / f"{file.oid}.lock"
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # timeout or read-only cache
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(WeakFileLock(path, timeout=_LOCK_TIMEOUT))
            yield


class _HashMismatch(Exception):
    """The downloaded bytes do not match the hash."""


def _write_chunk(file: RepoFile, stream: BinaryIO, bar: Any, offset: int, chunk: bytes) -> None:
    if offset + len(chunk) > file.size:
        raise _HashMismatch  # before an endless body fills the disk
    if offset != stream.tell():  # the download was restarted
        stream.seek(offset)
        stream.truncate()
    stream.write(chunk)
    bar.update(stream.tell() - bar.n)


def _terminal_stream() -> Any:
    """Return standard error without the proxies that escape its control characters."""
    stream: Any = sys.stderr
    while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = inner
    return stream


def _progress_bar(file: RepoFile) -> Any:
    return tqdm(  # type: ignore[no-untyped-call]
        total=file.size,
        unit="B",
        unit_scale=True,
        desc=one_line(file.name),
        file=_terminal_stream(),
        disable=file.size < _MIN_PROGRESS_BYTES,
    )
