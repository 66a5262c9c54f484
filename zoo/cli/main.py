"""``zoo``: the verbs put together, and how they fail."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer

from zoo.about import version
from zoo.cli import (
    catalogue,
    check,
    compose,
    demo,
    eval,
    export,
    generate,
    import_command,
    info,
    list_command,
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

_PANELS = {
    "Parts and specs": {"list": list_command, "show": show, "check": check, "schema": schema},
    "Models": {
        "demo": demo,
        "compose": compose,
        "info": info,
        "verify": verify,
        "generate": generate,
        "eval": eval,
        "vectors": vectors,
    },
    "Weights in and out": {
        "import": import_command,
        "export": export,
        "catalogue": catalogue,
        "pull": pull,
        "push": push,
    },
    "Plugins": {"plugins": plugins, "new-plugin": new_plugin, "test-plugin": test_plugin},
}
_VERBS = {name: module for verbs in _PANELS.values() for name, module in verbs.items()}
INTERRUPTED = 130

app = typer.Typer(
    help="The zoo: attention models made of parts you can see, swap, trust and share.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with: zoo demo",
)


def _handle_errors(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb, with what can happen to its output told before typer makes other codes of it."""

    @functools.wraps(verb)
    def run(**options: Any) -> None:
        try:
            verb(**options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader went away, as `head` does
            _discard_output()
            raise typer.Exit(0) from None
        except OSError as error:
            _discard_output()
            what = f"{error.filename}: " if error.filename else ""
            raise ZooError(f"{what}{(error.strerror or str(error)).lower()}") from error

    return run


def _discard_output() -> None:
    """Let what is still buffered go nowhere, so that the interpreter's exit says nothing of it."""
    with contextlib.suppress(OSError):  # a stream without a file, as tests have
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


for panel, verbs in _PANELS.items():
    for name, module in verbs.items():
        made = app.command(name, epilog=f"Example: {module.EXAMPLE}", rich_help_panel=panel)
        made(_handle_errors(module.command))


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


def _replace_closed_streams() -> None:
    """Stand-ins for standard streams that the caller closed (`>&-`), where Python has None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stand_in = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stand_in)


def main() -> None:
    """Run a verb: exit code 0, 1 for the user's mistake in plain words, 2 for wrong usage."""
    warnings.showwarning = _show_warning
    _replace_closed_streams()
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
