"""Atomic replacement of regular files, directory locks, fsync, hashes, the cache, lines of text."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_LOCK_FILE = ".zoo-lock"
"""Locked on Windows, which cannot open directories, in place of the directory that holds it."""
FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
MAX_NAME = 96
_STAGING = re.compile(r"\..+\.([1-9][0-9]{0,8})\.[0-9a-f]{8}\.part", re.DOTALL)
"""Names of staging directories: the target, the process and a random number."""

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


@contextlib.contextmanager
def atomic_write(target: Path, *, follow_links: bool = True) -> Iterator[Path]:
    """Yield a temporary path next to `target`, and replace `target` with it when the block ends.

    Only regular files and symbolic links are replaced; OSError is raised for directories, devices,
    pipes and sockets. An existing file keeps its permissions; those of a new file follow the umask.

    Windows cannot replace a file that a process has open or mapped, such as the weights of a
    loaded model; the replacement then raises PermissionError.

    Args:
        follow_links: whether the file that a symbolic link refers to is replaced, as for a path
            that the user has named; otherwise the link is, as for the files of a run.
    """
    if not follow_links:
        remove_link(target)
    target = resolve_target(target)
    with staging_dir(target) as staging:
        temporary = staging / "new"
        yield temporary
        fsync_path(temporary, permissions(target))
        replace_file(temporary, target)
        fsync_path(target.parent)


def remove_link(path: Path) -> None:
    """Remove a symbolic link, so that a file is written in its place, not where it refers to."""
    if path.is_symlink():
        path.unlink()


def is_file_name(name: str) -> bool:
    """Return whether a name of a spec, recipe or study can be part of a file's name."""
    return len(name) <= MAX_NAME and re.fullmatch(FILE_NAME, name) is not None


def resolve_target(path: str | os.PathLike[str]) -> Path:
    """Return the regular file that a write to `path` replaces or creates, after following links.

    Raises OSError for a loop of links, and for anything that is not a regular file.
    """
    with contextlib.suppress(FileNotFoundError):
        check_regular(path, os.stat(path).st_mode)
    return Path(os.path.realpath(path))


def replace_file(source: Path, target: Path) -> None:
    """Rename a file, over a regular file or a symbolic link; raise OSError for other kinds."""
    check_replaceable(target)
    os.replace(source, target)


def check_replaceable(path: Path) -> None:
    """Raise OSError if something other than a regular file or a symbolic link is at `path`."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if not stat.S_ISLNK(mode):
            check_regular(path, mode)


def check_regular(path: str | os.PathLike[str], mode: int) -> None:
    """Raise OSError if the mode of a file is that of a directory, a device, a pipe or a socket."""
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "a special file")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", os.fspath(path))


def read_limited(file: IO[bytes], max_bytes: int) -> bytes:
    """Return the rest of a file, at most ``max_bytes`` + 1 bytes, which tells that it is larger.

    ``file.read`` allocates all bytes that it is called with, also for a small file.
    """
    content = bytearray()
    while part := file.read(min(2**20, max_bytes + 1 - len(content))):
        content += part
    return bytes(content)


def permissions(path: Path) -> int | None:
    """Return the permission bits of a file, or None if it does not exist."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def staging_dir(target: Path) -> Iterator[Path]:
    """Yield a locked temporary directory next to `target`, removed when the block ends.

    Other users cannot read it.
    """
    remove_stale(target)
    staging, fd = _create_staging_dir(target)
    try:
        yield staging
    finally:
        os.close(fd)  # Windows cannot remove an open file
        shutil.rmtree(staging, ignore_errors=True)


def _create_staging_dir(target: Path) -> tuple[Path, int]:
    """Create a directory and lock it, so that other processes do not remove it as stale."""
    while True:
        staging = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
        try:
            staging.mkdir(mode=0o700)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(target)) from None
        with contextlib.suppress(FileNotFoundError):
            fd = _open_for_lock(staging)
            _try_lock(fd, wait=True)
            if staging.exists():
                return staging, fd
            os.close(fd)  # another process removed it before it was locked


def fsync_path(path: Path, mode: int | None = None) -> None:
    """Flush a file, or the entries of a directory, to the disk; on Windows only files.

    Args:
        mode: permissions to set on the file; default: unchanged.
    """
    is_dir = path.is_dir()
    if sys.platform == "win32" and is_dir:
        return
    fd = os.open(path, os.O_RDONLY if is_dir else os.O_RDWR)  # Windows flushes writable files only
    try:
        if mode is not None and sys.platform != "win32" and mode != permissions(path):
            os.fchmod(fd, mode)
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def lock_dir(folder: Path) -> Iterator[None]:
    """Hold the exclusive lock of a directory. The lock of a process that ends is released.

    Has no effect on file systems without locks.
    """
    fd = _open_for_lock(folder)
    try:
        _try_lock(fd, wait=True)
        yield
    finally:
        os.close(fd)
        if sys.platform == "win32":
            with contextlib.suppress(OSError):  # open in another process
                (folder / _LOCK_FILE).unlink()


def _open_for_lock(folder: Path) -> int:
    if sys.platform == "win32":
        return os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT)
    return os.open(folder, os.O_RDONLY)


def _try_lock(fd: int, *, wait: bool) -> bool | None:
    """Lock an open file until it is closed. Return None where there are no locks."""
    if sys.platform == "win32":
        return _try_lock_windows(fd, wait=wait)
    try:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def _try_lock_windows(fd: int, *, wait: bool) -> bool | None:
    import msvcrt

    mode = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK  # type: ignore[attr-defined, unused-ignore]
    while True:
        try:
            msvcrt.locking(fd, mode, 1)  # type: ignore[attr-defined, unused-ignore]
        except OSError as error:
            if wait and error.errno == errno.EDEADLOCK:
                continue  # LK_LOCK gives up after ten seconds
            return False if error.errno == errno.EACCES else None
        return True


def remove_stale(target: Path) -> None:
    """Remove staging directories next to `target`, also those of other targets, whose process has
    ended.

    A running process holds the lock of its directory. Without locks, the process ID in the name
    decides, which is not valid across containers.
    """
    for entry in target.parent.iterdir():
        match = _STAGING.fullmatch(entry.name)
        if not match or entry.is_symlink() or not entry.is_dir():
            continue
        with contextlib.suppress(OSError):  # removed by another process
            fd = _open_for_lock(entry)
            try:
                stale = _is_stale(entry, fd, int(match[1]))
                if stale:
                    shutil.rmtree(entry, ignore_errors=True)
            finally:
                os.close(fd)
            if stale and sys.platform == "win32":  # the lock file was open
                shutil.rmtree(entry, ignore_errors=True)


def remove_unlocked(folder: Path) -> None:
    """Remove a directory unless a process holds its lock; do nothing where there are no locks."""
    with contextlib.suppress(OSError):  # removed by another process
        fd = _open_for_lock(folder)
        try:
            if _try_lock(fd, wait=False) and sys.platform != "win32":
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(fd)


def _is_stale(staging: Path, fd: int, process: int) -> bool:
    locked = _try_lock(fd, wait=False)
    if locked and any(entry.name != _LOCK_FILE for entry in staging.iterdir()):
        return True
    # Without locks, or for a directory that its owner has not locked yet, ask for the process.
    return locked is not False and not _process_exists(process)


def _process_exists(process: int) -> bool:
    if sys.platform == "win32":
        return True  # os.kill(process, 0) sends Ctrl-C there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def hash_file(path: str | os.PathLike[str]) -> str:
    """Return the sha256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stat_key(state: os.stat_result) -> str:
    """Return the size and the times of a file, which change when the file changes.

    A program can set the time of the content, but not that of the last change.
    """
    return f"{state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"


def record_path(path: Path) -> Path:
    """Return the file with the record of another: ``model.sha256`` for ``model.safetensors``."""
    return path.with_suffix(".sha256")


def record_hash(path: Path) -> None:
    """Record the sha256 of a file next to it, with size and times, so that it is hashed once."""
    _write_record(path, os.stat(path), hash_file(path))


def has_recorded_hash(path: Path, *, skip_hash_check: bool = False) -> bool | None:
    """Return whether a file is as it was recorded; None without a record.

    Args:
        skip_hash_check: whether to accept a file of the recorded size without hashing it.
    """
    try:
        digest, _, recorded = record_path(path).read_bytes().strip().partition(b" ")
    except FileNotFoundError:
        return None
    except OSError:
        return False
    try:
        state = os.stat(path)
        if not stat.S_ISREG(state.st_mode):
            return False
        if recorded.decode("ascii", "replace") == stat_key(state):
            return True
        if skip_hash_check:
            return recorded.partition(b" ")[0] in (b"", b"%d" % state.st_size)
        if hash_file(path).encode() != digest:
            return False
    except OSError:  # not readable, or removed by another process
        return False
    with contextlib.suppress(OSError):  # a cache that cannot be written
        _write_record(path, state, digest.decode())
    return True


def _write_record(path: Path, state: os.stat_result, digest: str) -> None:
    with atomic_write(record_path(path), follow_links=False) as temporary:
        temporary.write_text(f"{digest} {stat_key(state)}\n", encoding="ascii")


def user_cache() -> Path | None:
    """Return the user's cache directory, or None if the user has no home directory."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if os.path.isabs(configured):
            return Path(configured)
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    except RuntimeError:
        return None


def os_error_message(error: Exception) -> str:
    """Return the operating system's message of an error, in lower case."""
    text = str(error)
    if "No space left" in text or getattr(error, "errno", None) == errno.ENOSPC:
        return "the disk is full (no space left on device)"
    strerror = getattr(error, "strerror", None)
    return str(strerror).lower() if strerror else text


def is_safetensors(content: bytes, size: int) -> bool:
    """Return whether a file of `size` bytes starts as a safetensors file: a length, then JSON."""
    return content[8:9] == b"{" and int.from_bytes(content[:8], "little") <= size


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, split at line feeds only, not at other Unicode line breaks."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
