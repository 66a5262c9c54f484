"""``zoo``: the command line."""

from __future__ import annotations

import atexit
import gc
import os
import sys

import typer

from zoo.about import version
from zoo.cli.commands import COMMANDS
from zoo.cli.panels import PANELS
from zoo.cli.plugin_commands import CommandGroup
from zoo.cli.terminal import escape_output, is_plain
from zoo.cli.verbosity import (
    QuietOption,
    VerboseOption,
    configure_output,
    reset_verbosity,
    set_verbosity,
)
from zoo.cli.wrapping import CONTEXT_SETTINGS, INTERRUPTED, SuggestingCommand, wrap_command
from zoo.errors import ZooError

app = typer.Typer(
    cls=CommandGroup,
    help="Attention models composed of interchangeable components.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT_SETTINGS,
    epilog="Start with: zoo demo\n\n"
    "Exit codes: 0 success; 1 an error, or a negative result (a check that failed, a difference); "
    "2 invalid usage; 130 interrupted.",
)

for panel, names in PANELS.items():
    for name in names:
        module = COMMANDS[name]
        if hasattr(module, "group"):
            app.add_typer(module.group, name=name, rich_help_panel=panel)
            continue
        register = app.command(
            name,
            cls=SuggestingCommand,
            epilog=f"Example: {module.EXAMPLE}",
            rich_help_panel=panel,
        )
        register(wrap_command(module.command))


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"zoo {version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(  # used by its callback
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    reset_verbosity()
    set_verbosity(verbose=verbose, quiet=quiet)


def _replace_closed_streams() -> None:
    """Open the null device for standard streams that are closed (`>&-`) and None in Python."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)


def _disable_styles() -> None:
    """Print help and usage errors without colours and styles with ``NO_COLOR``, and in pipes."""
    if is_plain() or not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        # Read by typer when it prints; otherwise it prints styles on GitHub Actions.
        os.environ.setdefault("_TYPER_FORCE_DISABLE_TERMINAL", "1")


def _skip_last_collection() -> None:
    """Skip the garbage collection at exit, which takes half a second after importing torch."""
    if "triton" not in sys.modules:  # its bindings print the objects that were not freed
        gc.freeze()


def _collect_less_often() -> None:
    """Collect garbage after 5,000 new objects instead of 700.

    Start-up creates hundreds of thousands of objects, of which almost all stay.
    """
    gc.set_threshold(5000, *gc.get_threshold()[1:])


def main() -> None:
    """Run a command; docs/command-line.md lists the exit codes."""
    _collect_less_often()
    _replace_closed_streams()
    escape_output()
    configure_output()
    _disable_styles()
    atexit.register(_skip_last_collection)
    try:
        app(prog_name="zoo")
    except ZooError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            # Do not wait for threads that wait for the network.
            os._exit(INTERRUPTED)
        raise
