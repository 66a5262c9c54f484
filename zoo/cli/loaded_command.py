"""Import of the function of a command that a plugin adds."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import typer
from typer.main import get_command

from zoo.cli.suggesting import SuggestingCommand
from zoo.cli.wrapping import wrap_command
from zoo.errors import one_line
from zoo.registry.command import Command

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"]}


def load_command(record: Command) -> Any:
    """Import the function of a command, and return the command that typer makes of it."""
    module, _, name = record.target.partition(":")
    function: Callable[..., None] = getattr(importlib.import_module(module), name)
    app = typer.Typer(add_completion=False, context_settings=CONTEXT_SETTINGS)
    epilog = one_line(f"Example: {record.example}") if record.example else None
    app.command(record.name, cls=SuggestingCommand, epilog=epilog)(wrap_command(function))
    return get_command(app)
