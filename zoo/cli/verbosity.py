"""The options ``--verbose`` and ``--quiet``: log records, warnings and progress bars."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import Annotated, Any

import typer

from zoo.errors import ZooWarning, escape_controls

VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print log messages, to standard error.")
]
QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print errors only: no warnings, no progress bars."),
]

_log = logging.getLogger("zoo")
_show_other_warning = warnings.showwarning


class _Handler(logging.Handler):
    """Print records to the current ``sys.stderr``, one line each."""

    def emit(self, record: logging.LogRecord) -> None:
        message = escape_controls(record.getMessage())
        print(f"{record.levelname.lower()}: {message}", file=sys.stderr)


def _show_warning(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print warnings of the zoo in one line, without a place in the code.

    Further lines of other warnings are indented, so that they cannot look like other messages.
    """
    if not issubclass(category, ZooWarning):
        text = escape_controls(str(message)).replace("\n", "\n  ")
        _show_other_warning(text, category, *where, **more)
    elif _log.isEnabledFor(logging.WARNING):
        print(f"warning: {escape_controls(str(message))}", file=sys.stderr)


def configure_output() -> None:
    """Print log records and warnings of the zoo to standard error."""
    warnings.showwarning = _show_warning
    if not any(isinstance(handler, _Handler) for handler in _log.handlers):
        _log.addHandler(_Handler())
    if not sys.stderr.isatty():
        _disable_hub_progress()


def set_verbosity(*, verbose: bool, quiet: bool) -> None:
    """Set the level of the logger ``zoo``; neither option leaves it unchanged."""
    if verbose and quiet:
        raise typer.BadParameter("--verbose and --quiet cannot be combined")
    if verbose:
        _log.setLevel(logging.INFO)
    elif quiet:
        _log.setLevel(logging.ERROR)
        _disable_hub_progress()


def reset_verbosity() -> None:
    """Set the default level: warnings and errors."""
    _log.setLevel(logging.WARNING)


def _disable_hub_progress() -> None:
    # Read by huggingface_hub when it is imported.
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def shows_progress() -> bool:
    """Return whether to show progress bars: on a terminal that can move its cursor, and not with
    ``--quiet``."""
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return is_terminal and shows_messages()


def shows_messages() -> bool:
    """Return whether to print messages other than errors: not with ``--quiet``."""
    return _log.isEnabledFor(logging.WARNING)
