"""The server process of ``zoo ui``."""

from __future__ import annotations

import gc
import secrets
import socket
import threading
import webbrowser

import uvicorn

from zoo.cli.index import load_index
from zoo.errors import ZooError
from zoo_ui.application import create_application
from zoo_ui.connection import LimitedConnection, Limits
from zoo_ui.guard import Guard
from zoo_ui.target import page_address

HOST = "127.0.0.1"
_SECONDS_TO_END = 1
_MAX_HEADER_BYTES = 256 * 1024  # browsers send the cookies of all servers of this machine


def serve(
    target: str | None, *, port: int, open_browser: bool, limits: Limits | None = None
) -> None:
    """Print the address of the page, and serve it until Ctrl-C.

    Args:
        target: a spec or a model to open.
        port: 0 for a free one.
        limits: those of connections.

    Raises:
        ZooError: if the port is in use, or there is no such spec or model.
    """
    index = load_index() if target is not None else None
    page = f"#{page_address(target, index)}" if target is not None and index is not None else ""
    with _bind(port) as listener:
        bound = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        app = Guard(create_application(index), port=bound, token=token)
        address = f"http://{HOST}:{bound}/?token={token}{page}"
        print(f"{address}\nCtrl-C ends the server.", flush=True)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            loop="asyncio",
            http=LimitedConnection.with_limits(limits or Limits()),
            h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=_SECONDS_TO_END,
        )
        gc.freeze()
        gc.enable()
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn raises it again after it has ended
            print("ended", flush=True)


def _bind(port: int) -> socket.socket:
    """Return a socket that listens on a port of the loopback interface."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).lower()
        raise ZooError(
            f"port {port} of {HOST} cannot be used: {reason}; choose another one with --port, or "
            "--port 0 for a free one"
        ) from None
    return listener
