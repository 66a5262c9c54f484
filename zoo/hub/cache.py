"""The cache that all Hugging Face libraries share: blobs by hash, snapshots by commit.

Files are downloaded to a place of their own, checked, and only then renamed to what others see,
so no process ever finds half a file and none depends on locks. That a blob was checked is
noted beside it, with the size and time it had, so that it is read for that only once.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from huggingface_hub import constants
from huggingface_hub.utils import WeakFileLock, tqdm

from zoo.errors import HubError
from zoo.files import reason, replacing, sweep
from zoo.hub import names
from zoo.hub.tree import File
from zoo.hub.wire import Wire

_CHUNK = 1 << 20
_LOCK_PATIENCE = 600.0
_WORTH_A_BAR = 1_000_000


class Cache:
    """One repository's part of the cache."""

    def __init__(
        self, repo: str, folder: str | os.PathLike[str] | None = None, *, unhashed: bool = False
    ) -> None:
        self.root = Path(folder or constants.HF_HUB_CACHE)
        self.repo = repo
        self.unhashed = unhashed
        self.name = "models--" + repo.replace("/", "--")
        self.folder = self.root / self.name

    def snapshot(self, commit: str) -> Path:
        return self.folder / "snapshots" / commit

    def tree(self, commit: str) -> Path:
        return self.folder / "trees" / f"{commit}.json"

    def blob(self, file: File) -> Path:
        return self.folder / "blobs" / file.oid

    def commit_of(self, revision: str) -> str | None:
        """The commit a branch or tag had when it was last asked for."""
        try:
            commit = (self.folder / "refs" / revision).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return commit if names.is_commit(commit) else None

    def note_commit(self, revision: str, commit: str) -> None:
        """Remember it for when there is no network; a read-only cache goes without."""
        path = self.folder / "refs" / revision
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as beside:
                beside.write_text(commit)

    def holds(self, file: File, commit: str) -> bool:
        """Whether the snapshot has the file, and its bytes are known to be the right ones."""
        pointer = self.snapshot(commit) / file.name
        try:
            return pointer.exists() and self._is_checked(file, pointer)
        except OSError:
            return False  # not to be read, or gone in this moment

    def discard(self, file: File) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.blob(file).unlink()

    def bring(self, wire: Wire, file: File, commit: str, *, force: bool = False) -> None:
        """Put the file into the snapshot, from the cache or from the hub."""
        try:
            with self._alone(file):
                blob = self.blob(file)
                if force or (blob.exists() and not self._is_checked(file, blob)):
                    self.discard(file)
                if not blob.exists():
                    self._download(wire, file, commit)
                self._point(file, commit)
        except OSError as error:
            raise HubError(
                f"{file.name} of {self.repo} cannot be kept in the cache {self.root}: "
                f"{reason(error)}; HF_HOME names another place"
            ) from None

    def _is_checked(self, file: File, path: Path) -> bool:
        """Whether the bytes are right: by the note about them, else by reading them once."""
        state = path.stat()
        with contextlib.suppress(OSError, ValueError):
            if self._note_of(file).read_text(encoding="ascii") == _stamp(state):
                return True
        if state.st_size != file.size:
            return False
        if self.unhashed:
            return True
        digest = file.hasher()
        with open(path, "rb") as opened:
            while chunk := opened.read(_CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != file.oid:
            return False
        self._note(self._note_of(file), state)
        return True

    def _note_of(self, file: File) -> Path:
        return self.folder / ".zoo-checked" / file.oid

    @staticmethod
    def _note(note: Path, state: os.stat_result) -> None:
        with contextlib.suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            with replacing(note) as beside:
                beside.write_text(_stamp(state), encoding="ascii")

    def _download(self, wire: Wire, file: File, commit: str) -> None:
        """Twice at the most: what arrives with the wrong hash is thrown away at once."""
        self.blob(file).parent.mkdir(parents=True, exist_ok=True)
        if not any(self._arrived(wire, file, commit) for _ in range(2)):
            raise HubError(
                f"{file.name} of {self.repo} at {commit[:12]} arrived twice with other bytes than "
                f"its hash {file.oid[:12]}… says ({file.size:,} bytes); nothing of it was kept"
            )

    def _arrived(self, wire: Wire, file: File, commit: str) -> bool:
        try:
            with replacing(self.blob(file)) as beside:
                with open(beside, "wb") as opened:
                    sink = _Sink(file, opened)
                    with sink.bar:
                        wire.download(self.repo, commit, file.name, sink)
                if not sink.right:
                    raise _Wrong
                self._note(self._note_of(file), beside.stat())
        except _Wrong:
            return False
        return True

    def _point(self, file: File, commit: str) -> None:
        """The name in the snapshot: a link to the blob, or its bytes where there are no links."""
        pointer, blob = self.snapshot(commit) / file.name, self.blob(file)
        if pointer.exists() and pointer.samefile(blob):
            return
        sweep(blob)  # whoever brought it may have been killed right after
        pointer.parent.mkdir(parents=True, exist_ok=True)
        beside = pointer.with_name(f".{secrets.token_hex(8)}.link")
        try:
            if constants.HF_HUB_DISABLE_SYMLINKS:
                raise OSError
            beside.symlink_to(os.path.relpath(blob, pointer.parent))
        except OSError:
            shutil.copy2(blob, beside)
        try:
            os.replace(beside, pointer)
        finally:
            beside.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _alone(self, file: File) -> Iterator[None]:
        """One download at a time of one file; only to save the others the work."""
        path = self.root / ".locks" / self.name / f"{file.oid}.lock"
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # timeouts and read-only caches
                path.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(WeakFileLock(path, timeout=_LOCK_PATIENCE))
            yield


def _stamp(state: os.stat_result) -> str:
    return f"{state.st_size} {state.st_mtime_ns}"


class _Wrong(Exception):
    """Bytes with another hash."""


class _Sink:
    """A download on its way into a file, hashed and counted as it comes."""

    def __init__(self, file: File, opened: Any) -> None:
        self.file, self.opened = file, opened
        self.bar = tqdm(  # type: ignore[no-untyped-call]
            total=file.size,
            unit="B",
            unit_scale=True,
            desc=file.name,
            disable=file.size < _WORTH_A_BAR,
        )
        self.digest, self.taken = file.hasher(), 0

    def restart(self) -> None:
        self.opened.seek(0)
        self.opened.truncate()
        self.digest = self.file.hasher()
        if self.taken:
            self.taken = 0
            self.bar.reset()

    def take(self, chunk: bytes) -> None:
        self.taken += len(chunk)
        if self.taken > self.file.size:
            raise _Wrong
        self.opened.write(chunk)
        self.digest.update(chunk)
        self.bar.update(len(chunk))

    @property
    def right(self) -> bool:
        return self.taken == self.file.size and bool(self.digest.hexdigest() == self.file.oid)
