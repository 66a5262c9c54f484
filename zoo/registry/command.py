"""A command that a plugin adds to the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class Command:
    """A command that a plugin adds to ``zoo``.

    >>> Command("vectors", "zoo_word2vec.vectors_command:command", "Query word vectors.")
    Command(name='vectors', target='zoo_word2vec.vectors_command:command', help='Query word \
vectors.', example='', after='', panel='')

    Args:
        name: what follows ``zoo`` on the command line: lower-case words joined by hyphens.
        target: ``"module:function"``, imported when the command runs. The function's signature
            declares arguments and options as for typer; its docstring is the command's help.
        help: one sentence for ``zoo --help``.
        example: a full command line, shown by ``zoo NAME --help``.
        after: a command of the zoo with the same first argument, whose output names this one as
            the next: ``check``.
        panel: the panel of ``zoo --help`` that lists it; default: that of the plugin.
    """

    name: str
    target: str
    help: str
    example: str = ""
    after: str = ""
    panel: str = ""

    def validate(self) -> str | None:
        """Return what is wrong with the fields, or None."""
        for field in ("name", "target", "help", "example", "after", "panel"):
            if not isinstance(getattr(self, field), str):
                return f"command {self.name!r}: {field} is not a string"
        if not _NAME.fullmatch(self.name):
            return f"command name {self.name!r} is not lower-case words joined by hyphens"
        if not _TARGET.fullmatch(self.target):
            return f"command '{self.name}': target {self.target!r} is not 'module:function'"
        if not self.help.strip():
            return f"command '{self.name}' has no help"
        return None
