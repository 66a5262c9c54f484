"""A running ``zoo ui``, as a real process on a free port of this machine."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_LIMITED = """
from zoo_ui.connection import Limits
from zoo_ui.server import serve
serve(None, port=0, open_browser=False, limits=Limits(**{limits!r}))
"""


class UiServer:
    """A server in its own process.

    Args:
        arguments: further arguments of ``zoo ui``.
        limits: limits of connections, which the command does not set.
        options: options of the process.

    Attributes:
        address: the printed address, with the token.
        port: its port.
        token: its token.
    """

    def __init__(
        self, *arguments: str, limits: Mapping[str, float] | None = None, **options: Any
    ) -> None:
        command = [sys.executable, "-m", "zoo", "ui", "--no-browser", "--port", "0", *arguments]
        if limits is not None:
            command = [sys.executable, "-c", _LIMITED.format(limits=dict(limits))]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.process.communicate()[1]
        self.hint = self.process.stdout.readline()
        parts = urlsplit(self.address)
        self.port = parts.port
        self.token = parts.query.removeprefix("token=")

    def page(self, state: str = "") -> str:
        """Return the address of a page, with the token."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}#{state}"

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request with exactly these headers; return status, headers and content."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        content = None if body is None else json.dumps(body).encode()
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if content is not None:
            connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content)
        response = connection.getresponse()
        answer = response.status, dict(response.getheaders()), response.read()
        connection.close()
        return answer

    def connect(self, *lines: str, content: bytes = b"") -> socket.socket:
        """Open a connection and send lines of a request, as they are, with the token and content.

        Without a line nothing is sent.
        """
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        if lines:
            first, *more = lines
            head = [first, f"Host: 127.0.0.1:{self.port}", f"Authorization: Bearer {self.token}"]
            connection.sendall("".join(f"{line}\r\n" for line in [*head, *more]).encode() + content)
        return connection

    def call(self, path: str, body: Any = None) -> Any:
        """Return the JSON that the server answers to a program with the token."""
        method = "GET" if body is None else "POST"
        status, _, content = self.send(
            method, path, {"Authorization": f"Bearer {self.token}"}, body
        )
        assert status == 200, content
        return json.loads(content)

    def interrupt(self) -> tuple[int, str, str]:
        """Press Ctrl-C; return exit code, standard output and standard error."""
        os.kill(self.process.pid, signal.SIGINT)
        output, errors = self.process.communicate(timeout=30)
        return self.process.returncode, output, errors


def read_all(connection: socket.socket) -> bytes:
    """Return what the server sends until it ends the connection."""
    received = b""
    with connection, contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            received += chunk
    return received
