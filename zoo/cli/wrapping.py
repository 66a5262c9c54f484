"""What all commands share: options, errors of streams, suggestions, import of those of plugins."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from zoo.cli.verbosity import QuietOption, VerboseOption, set_verbosity
from zoo.errors import ZooError, one_line
from zoo.registry.command import Command

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def wrap_command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command that also takes ``--verbose`` and ``--quiet``, and reports stream errors.

    Its help is the docstring, whose paragraphs are wrapped to the terminal. A function with a
    parameter ``verbose`` of its own receives the value.
    """
    signature = inspect.signature(function, eval_str=True)
    own = {
        name: parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
    }

    @functools.wraps(function)
    def run(**options: Any) -> None:
        set_verbosity(verbose=options["verbose"], quiet=options["quiet"])
        try:
            function(**{name: options[name] for name in own})
            sys.stdout.flush()
        except KeyboardInterrupt as stop:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(getattr(stop, "exit_code", INTERRUPTED)) from None
        except ModuleNotFoundError as error:  # a plugin that uses another one, such as `zoo demo`
            plugin = (error.name or "").partition(".")[0]
            if not plugin.startswith("zoo_"):
                raise
            raise ZooError(f"the command needs the plugin '{plugin}', which is missing") from None
        except BrokenPipeError:  # the reader has closed the pipe, as `head` does
            _discard_output()
            raise typer.Exit(0) from None
        except OSError as error:
            _discard_output()
            where = f"{error.filename}: " if error.filename else ""
            raise ZooError(f"{where}{(error.strerror or str(error)).lower()}") from error

    added = {
        name: inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation
        )
        for name, annotation in (("verbose", VerboseOption), ("quiet", QuietOption))
    }
    every = {**added, **own} if "verbose" in own else {**own, **added}
    run.__signature__ = signature.replace(parameters=list(every.values()))  # type: ignore[attr-defined]
    run.__doc__ = _join_lines(function.__doc__ or "")
    run.__annotations__ = {name: parameter.annotation for name, parameter in every.items()}
    return run


def _join_lines(docstring: str) -> str:
    """Return a docstring with one line for each paragraph; lists and indented lines stay."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(
        text if re.search(r"^(- | )", text, re.MULTILINE) else text.replace("\n", " ")
        for text in paragraphs
    )


def _discard_output() -> None:
    """Send buffered output to the null device, so that the interpreter's exit does not fail."""
    with contextlib.suppress(OSError):  # a stream without a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def suggest_options() -> Iterator[None]:
    """Name the closest option in the error of an unknown one, as for commands."""
    try:
        yield
    except Exception as error:
        # The class of the error is private in typer.
        if close := getattr(error, "possibilities", None):
            names = " or ".join(f"'{name}'" for name in close)
            error.message = f"No such option '{error.option_name}'. Did you mean {names}?"  # type: ignore[attr-defined]
            error.possibilities = None  # type: ignore[attr-defined]
        raise


class SuggestingCommand(TyperCommand):
    """A command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with suggest_options():
            return super().parse_args(ctx, args)


class SuggestingGroup(TyperGroup):
    """A group of commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with suggest_options():
            return super().parse_args(ctx, args)


CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"]}


def load_command(record: Command) -> Any:
    """Import the function of a command, and return the command that typer makes of it."""
    module, _, name = record.target.partition(":")
    function: Callable[..., None] = getattr(importlib.import_module(module), name)
    app = typer.Typer(add_completion=False, context_settings=CONTEXT_SETTINGS)
    epilog = one_line(f"Example: {record.example}") if record.example else None
    app.command(record.name, cls=SuggestingCommand, epilog=epilog)(wrap_command(function))
    return get_command(app)
