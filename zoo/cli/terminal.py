"""Standard streams and consoles that escape control characters.

Commands print names and texts of files, plugins and servers. They are escaped here, on the way
out: everything that is written to a standard stream, and every segment of a rich console.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from zoo.errors import escape_characters, escape_controls

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_WITHOUT_TERMINAL = 80
_BAR_CODES = re.compile(r"(?:[\n\r]|\x1b\[(?:K|[0-9]{0,3}A))*+")
"""Moves to the start of the line or to a line above, and clears the line."""
_ESCAPE_MISSING = "zoo-escape"


class EscapingStream:
    """A text stream that escapes control characters.

    Rich and tqdm write their own control characters: rich unwraps `rich_proxied_file`, and
    `zoo.hub.cache` passes the same attribute to tqdm.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(escape_controls(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


class ProgressStream(EscapingStream):
    """An escaping stream that also shows progress bars of libraries.

    Control characters that move to and clear the line of a bar are written as they are, at the
    beginning of a text only.
    """

    def write(self, text: str) -> int:
        codes = _BAR_CODES.match(text)
        start = codes.end() if codes else 0
        self.rich_proxied_file.write(text[:start] + escape_controls(text[start:]))
        return len(text)


def escape_output() -> None:
    """Escape what this process writes to its standard streams.

    Characters that the encoding of a stream does not have (``PYTHONIOENCODING=ascii``, ``LANG=C``)
    are escaped too.
    """
    codecs.register_error(_ESCAPE_MISSING, _escape_missing)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, EscapingStream):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=_ESCAPE_MISSING)
            setattr(sys, name, cast(TextIO, EscapingStream(stream)))


def _escape_missing(error: UnicodeError) -> tuple[str, int]:
    """Return the escapes of the characters that cannot be encoded, and where to continue."""
    assert isinstance(error, UnicodeEncodeError)
    return escape_characters(error.object[error.start : error.end]), error.end


@contextmanager
def progress_on_stderr() -> Iterator[None]:
    """Show progress bars of libraries on standard error inside the block."""
    stream = sys.stderr
    if isinstance(stream, EscapingStream):
        sys.stderr = cast(TextIO, ProgressStream(stream.rich_proxied_file))
    try:
        yield
    finally:
        sys.stderr = stream


def console(*, stderr: bool = False) -> Console:
    """Return a console that escapes control characters, and that raises BrokenPipeError to its
    caller."""
    from rich.console import Console

    class Escaping(Console):
        def render(self, *args: Any, **kwargs: Any) -> Any:
            for segment in super().render(*args, **kwargs):
                if segment.control:
                    yield segment
                else:
                    yield segment._replace(text=escape_controls(segment.text))

        @property
        def file(self) -> IO[str]:
            # A progress bar puts a second proxy before the escaping stream.
            file = super().file
            while (inner := getattr(file, "rich_proxied_file", None)) is not None:
                file = inner
            return file

        @file.setter
        def file(self, new_file: IO[str]) -> None:
            self._file = new_file

        def on_broken_pipe(self) -> None:
            raise  # called by rich inside its except block

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    colours: Any = None if is_plain() else "auto"
    return Escaping(width=width, highlight=False, stderr=stderr, color_system=colours)


def is_plain() -> bool:
    """Return whether to print without colours and styles: ``NO_COLOR`` is set."""
    return bool(os.environ.get("NO_COLOR"))
