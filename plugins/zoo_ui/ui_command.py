"""``zoo ui``: a web page on this machine to browse components, build specs and run models."""

from __future__ import annotations

import gc
from typing import Annotated

import typer


def command(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="SPEC|MODEL",
            help="What to open: a spec file, the name of a spec, a model file or folder, a name in "
            "the catalogue, or ORG/NAME on the Hub.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 for any free one.")
    ] = 8765,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address; open no browser.")
    ] = False,
) -> None:
    """Browse components, build specs and look inside models in a web browser.

    The page is served on this machine only, at an address with a secret token; the address is
    printed. Ctrl-C ends the server. Nothing is loaded from the network, except models of the Hub
    that you open.
    """
    from zoo.plugin import MissingExtra

    gc.disable()  # imports create no garbage; the server enables it
    try:
        from zoo_ui.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise MissingExtra("'zoo ui'", library=error.name, extra="ui") from None
    serve(target, port=port, open_browser=not no_browser)
