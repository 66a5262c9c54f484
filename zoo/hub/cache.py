"""The cache that all Hugging Face libraries share: blobs by hash, snapshots by commit.

Files are downloaded to a place of their own, checked, and only then renamed to what others see,
so no process ever finds half a file and none depends on locks. That a blob was checked is
noted beside it, with the size and time it had, so that it is read for that only once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from huggingface_hub import constants
from huggingface_hub.utils import WeakFileLock, tqdm

from zoo.errors import HubError
from zoo.files import atomic_write, os_error_message, remove_stale
from zoo.hub import names
from zoo.hub.client import HubClient
from zoo.hub.tree import RepoFile

_log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_LOCK_TIMEOUT = 600.0
_MIN_PROGRESS_BYTES = 1_000_000


class Cache:
    """One repository's part of the cache."""

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
        self.name = "models--" + repo.replace("/", "--")
        self.folder = self.root / self.name

    def snapshot(self, commit: str) -> Path:
        return self.folder / "snapshots" / commit

    def tree(self, commit: str) -> Path:
        return self.folder / "trees" / f"{commit}.json"

    def blob(self, file: RepoFile) -> Path:
        return self.folder / "blobs" / file.oid

    def cached_commit(self, revision: str) -> str | None:
        """The commit a branch or tag had when it was last asked for."""
        try:
            commit = (self.folder / "refs" / revision).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return commit if names.is_commit(commit) else None

    def save_ref(self, revision: str, commit: str) -> None:
        """Remember it for when there is no network; a read-only cache goes without."""
        path = self.folder / "refs" / revision
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as temp_path:
                temp_path.write_text(commit)

    def contains(self, file: RepoFile, commit: str) -> bool:
        """Whether the snapshot has the file, and its bytes are known to be the right ones."""
        pointer = self.snapshot(commit) / file.name
        try:
            return pointer.exists() and self._is_verified(file, pointer)
        except OSError:
            return False  # not to be read, or gone in this moment

    def discard(self, file: RepoFile) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.blob(file).unlink()

    def fetch(self, client: HubClient, file: RepoFile, commit: str, *, force: bool = False) -> None:
        """Put the file into the snapshot, from the cache or from the hub."""
        try:
            with self._download_lock(file):
                blob = self.blob(file)
                if force or (blob.exists() and not self._is_verified(file, blob)):
                    self.discard(file)
                if not blob.exists():
                    self._download(client, file, commit)
                self._link_to_blob(file, commit)
        except OSError as error:
            raise HubError(
                f"{file.name} of {self.repo} cannot be kept in the cache {self.root}: "
                f"{os_error_message(error)}; HF_HOME names another place"
            ) from None

    def _is_verified(self, file: RepoFile, path: Path) -> bool:
        """Whether the bytes are right: by the note about them, else by reading them once."""
        state = path.stat()
        with contextlib.suppress(OSError, ValueError):
            if self._marker_path(file).read_text(encoding="ascii") == _stat_key(state):
                return True
        if state.st_size != file.size:
            return False
        if self.skip_hash_check:
            return True
        digest = file.hasher()
        with open(path, "rb") as opened:
            while chunk := opened.read(_CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != file.oid:
            return False
        self._write_marker(self._marker_path(file), state)
        return True

    def _marker_path(self, file: RepoFile) -> Path:
        return self.folder / ".zoo-checked" / file.oid

    @staticmethod
    def _write_marker(note: Path, state: os.stat_result) -> None:
        with contextlib.suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(note) as temp_path:
                temp_path.write_text(_stat_key(state), encoding="ascii")

    def _download(self, client: HubClient, file: RepoFile, commit: str) -> None:
        """Twice at the most: what arrives with the wrong hash is thrown away at once."""
        _log.info("downloading %s of %s (%d bytes)", file.name, self.repo, file.size)
        self.blob(file).parent.mkdir(parents=True, exist_ok=True)
        if not any(self._try_download(client, file, commit) for _ in range(2)):
            raise HubError(
                f"{file.name} of {self.repo} at {commit[:12]} arrived twice with other bytes than "
                f"its hash {file.oid[:12]}… says ({file.size:,} bytes); nothing of it was kept"
            )

    def _try_download(self, client: HubClient, file: RepoFile, commit: str) -> bool:
        try:
            with atomic_write(self.blob(file)) as temp_path:
                with open(temp_path, "wb") as opened:
                    sink = _FileSink(file, opened)
                    with sink.bar:
                        client.download(self.repo, commit, file.name, sink)
                if not sink.is_complete:
                    raise _HashMismatch
                self._write_marker(self._marker_path(file), temp_path.stat())
        except _HashMismatch:
            return False
        return True

    def _link_to_blob(self, file: RepoFile, commit: str) -> None:
        """The name in the snapshot: a link to the blob, or its bytes where there are no links."""
        pointer, blob = self.snapshot(commit) / file.name, self.blob(file)
        if pointer.exists() and pointer.samefile(blob):
            return
        remove_stale(blob)  # whoever brought it may have been killed right after
        pointer.parent.mkdir(parents=True, exist_ok=True)
        temp_path = pointer.with_name(f".{secrets.token_hex(8)}.link")
        try:
            if constants.HF_HUB_DISABLE_SYMLINKS:
                raise OSError
            temp_path.symlink_to(os.path.relpath(blob, pointer.parent))
        except OSError:
            shutil.copy2(blob, temp_path)
        try:
            os.replace(temp_path, pointer)
        finally:
            temp_path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _download_lock(self, file: RepoFile) -> Iterator[None]:
        """One download at a time of one file; only to save the others the work."""
        path = self.root / ".locks" / self.name / f"{file.oid}.lock"
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # timeouts and read-only caches
                path.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(WeakFileLock(path, timeout=_LOCK_TIMEOUT))
            yield


def _stat_key(state: os.stat_result) -> str:
    return f"{state.st_size} {state.st_mtime_ns}"


class _HashMismatch(Exception):
    """Bytes with another hash."""


class _FileSink:
    """A download on its way into a file, hashed and counted as it comes."""

    def __init__(self, file: RepoFile, opened: Any) -> None:
        self.file, self.opened = file, opened
        self.bar = tqdm(  # type: ignore[no-untyped-call]
            total=file.size,
            unit="B",
            unit_scale=True,
            desc=file.name,
            disable=file.size < _MIN_PROGRESS_BYTES,
        )
        self.digest, self.taken = file.hasher(), 0

    def restart(self) -> None:
        self.opened.seek(0)
        self.opened.truncate()
        self.digest = self.file.hasher()
        if self.taken:
            self.taken = 0
            self.bar.reset()

    def write_chunk(self, chunk: bytes) -> None:
        self.taken += len(chunk)
        if self.taken > self.file.size:
            raise _HashMismatch
        self.opened.write(chunk)
        self.digest.update(chunk)
        self.bar.update(len(chunk))

    @property
    def is_complete(self) -> bool:
        return self.taken == self.file.size and bool(self.digest.hexdigest() == self.file.oid)
