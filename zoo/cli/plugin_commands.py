"""Commands that plugins add: listed from the index, imported when they run."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from typer.core import TyperCommand

from zoo.cli.index import load_index
from zoo.cli.wrapping import SuggestingGroup, load_command
from zoo.errors import ZooError, escape_controls, one_line
from zoo.registry.command import Command
from zoo.registry.plugin_call import PluginCall, PluginExit


class _PluginCommand(TyperCommand):
    """A row of ``zoo --help``; replaced by the real command before it runs."""

    def __init__(self, plugin: str, record: Command) -> None:
        # Typer prints these with its own console.
        panel = one_line(record.panel or f"Plugin {plugin}")
        super().__init__(record.name, help=escape_controls(record.help), rich_help_panel=panel)
        self.plugin = plugin
        self.record = record


class CommandGroup(SuggestingGroup):
    """The commands of the zoo and those of plugins.

    The index is read only for ``--help`` and for names that the zoo itself does not have.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        self._add_plugin_commands()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self._add_plugin_commands()
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            if not get_close_matches(args[0], names):  # typer suggests close matches
                ctx.fail(f"No such command '{args[0]}'. Commands: {', '.join(names)}.")
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, _PluginCommand):
            command = _load(command)
        return name, command, rest

    def _add_plugin_commands(self) -> None:
        for plugin in load_index().plugins:
            for record in plugin.commands:
                self.commands.setdefault(record.name, _PluginCommand(plugin.name, record))


def _load(command: _PluginCommand) -> Any:
    try:
        with PluginCall():
            return load_command(command.record)
    except PluginExit as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    raise ZooError(
        f"command '{command.name}' of plugin '{command.plugin}' cannot be loaded: {reason}"
    )
