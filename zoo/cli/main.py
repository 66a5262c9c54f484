"""``zoo``: the verbs put together, and how they fail."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from zoo.about import version
from zoo.cli import (
    catalogue,
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
    pull,
    push,
    schema,
    show,
    test_plugin,
    vectors,
    verify,
)
from zoo.errors import ZooError, ZooWarning

_VERBS = {
    "list": list_,
    "show": show,
    "check": check,
    "compose": compose,
    "info": info,
    "verify": verify,
    "schema": schema,
    "plugins": plugins,
    "new-plugin": new_plugin,
    "test-plugin": test_plugin,
    "eval": eval,
    "generate": generate,
    "vectors": vectors,
    "import": import_,
    "export": export,
    "catalogue": catalogue,
    "pull": pull,
    "push": push,
    "demo": demo,
}

INTERRUPTED = 130


class _Verbs(TyperGroup):
    """How verbs end early; typer would call the one a failure and pass over the other."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # The reader went away, as `head` does; leave without a traceback at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=_Verbs,
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


_show_any_warning = warnings.showwarning


def _show_warning(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
    """The zoo's own warnings in a line, without a place in the code."""
    if issubclass(category, ZooWarning):
        print(f"warning: {message}", file=sys.stderr)
    else:
        _show_any_warning(message, category, *where, **more)


def main() -> None:
    """Run a verb: exit code 0, 1 for the user's mistake in plain words, 2 for wrong usage."""
    warnings.showwarning = _show_warning
    if not sys.stderr.isatty():
        # Read by huggingface_hub, whose bars would fill a log with their every step.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        app()
    except ZooError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            # Everything is tidied up; threads that wait for a network are not waited for.
            os._exit(INTERRUPTED)
        raise
