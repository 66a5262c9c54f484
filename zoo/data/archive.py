"""Files in tar archives."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from zoo.errors import DataError

if TYPE_CHECKING:
    from zoo.data.files import FileBytes

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
MAX_MEMBERS = 100_000
MAX_HEADER = 64 * 1024
"""Largest header of a member, in bytes: a name, or further properties."""

Members = dict[str, tuple[int, int]]
"""Start and stop of each file of an archive, by name."""


def find_archive(path: Path) -> Path | None:
    """Return the archive that a path such as ``tasks.tar.xz/qa1.txt`` leads into, or None."""
    for parent in path.parents:
        if parent.name.lower().endswith(SUFFIXES) and parent.is_file():
            return parent
    return None


def list_members(archive: FileBytes) -> Members:
    """Return the files of a decompressed archive; raise DataError if it is not valid."""
    members: Members = {}
    count = 0
    try:
        with tarfile.open(fileobj=_Headers(archive), mode="r:") as opened:
            while (member := opened.next()) is not None:
                opened.members.clear()  # type: ignore[attr-defined]  # not in its stub
                count += 1
                if count > MAX_MEMBERS:
                    raise DataError(
                        f"it has more than {MAX_MEMBERS:,} members; extract it", str(archive.path)
                    )
                stop = member.offset_data + member.size
                if not member.offset_data <= stop <= len(archive):
                    raise tarfile.ReadError(f"'{member.name}' is not complete")
                if member.isfile() and not member.issparse():
                    members[member.name.removeprefix("./")] = member.offset_data, stop
    except RecursionError:
        raise _invalid(archive, "its headers are nested") from None
    except (tarfile.TarError, ValueError, OSError) as error:
        raise _invalid(archive, str(error)) from None
    return members


def _invalid(archive: FileBytes, reason: str) -> DataError:
    return DataError(f"it is not a valid tar archive: {reason}", str(archive.path))


class _Headers(io.RawIOBase):
    """The stream from which `tarfile` reads headers; their sizes come from the archive."""

    def __init__(self, archive: FileBytes) -> None:
        self.archive = archive
        self.position = 0

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_HEADER:
            raise tarfile.ReadError(f"a header has {size:,} bytes; at most {MAX_HEADER:,} are read")
        content = self.archive.read(self.position, self.position + size)
        self.position += len(content)
        return content

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        assert whence == io.SEEK_SET
        if not offset >= 0:
            raise tarfile.ReadError("the size of a member is negative")
        self.position = min(offset, len(self.archive) + tarfile.BLOCKSIZE)
        return self.position

    def tell(self) -> int:
        return self.position

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True
