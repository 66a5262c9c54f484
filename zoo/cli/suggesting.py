"""Commands that suggest the option that a misspelt one resembles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperCommand, TyperGroup


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
