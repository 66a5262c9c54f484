"""``zoo``: the verbs put together, and how they fail."""

from __future__ import annotations

import os
import sys

import typer

from zoo.about import version
from zoo.cli import (
    check,
    compose,
    demo,
    eval,
    export,
    generate,
    import_,
    info,
    list_,
    new_plugin,
    plugins,
    schema,
    show,
    test_plugin,
)
from zoo.errors import ZooError

_VERBS = {
    "list": list_,
    "show": show,
    "check": check,
    "compose": compose,
    "info": info,
    "schema": schema,
    "plugins": plugins,
    "new-plugin": new_plugin,
    "test-plugin": test_plugin,
    "eval": eval,
    "generate": generate,
    "import": import_,
    "export": export,
    "demo": demo,
}

app = typer.Typer(
    help="The zoo: attention models made of parts you can see, swap, trust and share.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, module in _VERBS.items():
    app.command(name, epilog=f"Example: {module.EXAMPLE}")(module.command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"zoo {version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(  # read by its callback
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None: ...


def main() -> None:
    """Run a verb: exit code 0, 1 for the user's mistake in plain words, 2 for wrong usage."""
    try:
        app()
    except ZooError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away, as `head` does; leave without a traceback at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
