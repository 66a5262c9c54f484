"""The inputs of ``zoo generate`` and ``zoo predict``: arguments, or lines of a file."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from zoo.interfaces import Model

_MAX_PATH = 1024

InputsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT",
        help="Input texts, or files of images or audio, as the model takes them; '-' reads "
        "standard input.",
    ),
]
FileOption = Annotated[
    Path | None, typer.Option(help="Read input texts from a file, one per line.")
]


@dataclass(frozen=True)
class InputLines:
    """Inputs of a model.

    Args:
        lines: the inputs.
        origin: the file of the lines, or None if they are arguments of the command.
    """

    lines: list[str]
    origin: str | None

    @contextmanager
    def report_lines(self) -> Iterator[None]:
        """Name the line of a file, or the file, in the error of an input that cannot be used."""
        from zoo.errors import DataError, InputError

        try:
            yield
        except InputError as error:
            if self.origin is None:
                line = self.lines[error.number - 1]
                if not os.path.isfile(line):
                    raise
                raise DataError(error.message, line) from None
            raise DataError(error.message, f"{self.origin}:{error.number}") from None


def read_inputs(texts: list[str], file: Path | None) -> InputLines:
    """Return the inputs of a command."""
    from zoo.errors import ZooError
    from zoo.files import split_lines

    if bool(texts) == (file is not None):
        raise ZooError("expected either INPUT arguments ('-' for standard input) or --file FILE")
    if file is None:
        from_stdin = texts == ["-"]
        lines = split_lines(sys.stdin.read()) if from_stdin else texts
        found = InputLines(lines, "standard input" if from_stdin else None)
    else:
        try:
            found = InputLines(split_lines(file.read_text(encoding="utf-8-sig")), str(file))
        except OSError as error:
            raise ZooError(f"{file} cannot be read: {(error.strerror or '').lower()}") from None
        except UnicodeDecodeError:
            raise ZooError(f"{file} is not UTF-8 text") from None
    if not found.lines:
        raise ZooError(f"{found.origin} is empty; expected one input per line")
    return found


def check_texts(model: Model, inputs: InputLines) -> None:
    """Raise ZooError if an argument is the name of an existing file, but the model takes texts."""
    from zoo.errors import ZooError, truncate
    from zoo.generation.text_inputs import takes_text

    if inputs.origin is not None or not takes_text(model):
        return
    for line in inputs.lines:
        if len(line) < _MAX_PATH and os.path.isfile(line):
            name = truncate(line, 80)
            raise ZooError(
                f"'{name}' is a file, but the model takes texts: --file {name} reads its lines, "
                f"--data file={name} the columns of a table; '-' reads the text from standard input"
            )


def parse_ids(line: str) -> list[int]:
    """Return the token IDs of a line."""
    from zoo.errors import ZooError

    try:
        return [int(word) for word in line.split()]
    except ValueError:
        raise ZooError(f"'{line}' is not a list of token IDs, for example '5 17 3'") from None


def warn_unknown(model: Model, lines: Sequence[str]) -> None:
    """Warn of symbols that a model does not know."""
    from zoo.errors import ZooWarning
    from zoo.generation.text_inputs import describe_unknown

    if message := describe_unknown(model, lines):
        warnings.warn(message, ZooWarning, stacklevel=2)
