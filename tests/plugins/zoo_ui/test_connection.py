"""Clients that are slow, silent or many, and requests that are not HTTP, over real sockets."""

import contextlib
import select

import pytest
from ui_kit import UiServer, read_all

POST = "POST /api/parse HTTP/1.1"


@pytest.fixture(scope="module")
def limited():
    """A server with limits of a moment, which a test waits for."""
    seconds = dict.fromkeys(("head_seconds", "body_seconds", "write_seconds"), 0.3)
    limits = {**seconds, "connections": 4}
    started = UiServer(limits=limits)
    yield started
    code, _, errors = started.interrupt()
    assert (code, errors) == (0, "")


@pytest.mark.parametrize(
    "lines", [(), ("GET / HTTP/1.1",), ("GET / HTTP/1.1", "X-Half: "), (POST, "Content-Le")]
)
def test_a_connection_without_a_whole_request_is_ended(limited, lines):
    assert read_all(limited.connect(*lines)) == b""


@pytest.mark.parametrize(
    ("lines", "content"),
    [
        ((POST, "Content-Length: 50", ""), b""),
        ((POST, "Content-Length: 50", ""), b'{"text": '),
        ((POST, "Transfer-Encoding: chunked", ""), b"2\r\n{}\r\n"),
        ((POST, "Transfer-Encoding: chunked", ""), b"ffffff\r\n{"),
    ],
)
def test_a_connection_without_a_whole_body_is_ended(limited, lines, content):
    assert read_all(limited.connect(*lines, content=content)) == b""


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        (("GET / HTTP/1.1",), b"X: y\r\n"),
        ((POST, "Transfer-Encoding: chunked", ""), b"1\r\n \r\n"),
        # The request is answered, and its body never ends.
        (("POST /absent HTTP/1.1", "Transfer-Encoding: chunked", ""), b"1\r\n \r\n"),
    ],
)
def test_bytes_that_come_one_by_one_do_not_extend_the_time(limited, lines, more):
    with limited.connect(*lines) as connection:
        connection.settimeout(0.02)
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                connection.sendall(more)
                if _read_within_time(connection) == b"":
                    return
            pytest.fail("the connection is still open")


def _read_within_time(connection):
    try:
        return connection.recv(4096)
    except TimeoutError:
        return None


def test_a_connection_that_is_kept_is_ended_when_no_further_request_comes(limited):
    with limited.connect("HEAD / HTTP/1.1", "") as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 OK")
        connection.sendall(b"GET / HT")
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(4096) == b""


def test_a_client_that_does_not_read_the_responses_is_ended(limited):
    request = f"GET /static/katex/katex.min.js HTTP/1.1\r\nHost: 127.0.0.1:{limited.port}\r\n"
    request += f"Authorization: Bearer {limited.token}\r\n\r\n"
    with limited.connect() as connection:
        connection.sendall(request.encode() * 100)
        ended = select.poll()
        ended.register(connection, select.POLLHUP)
        assert ended.poll(60_000)


def test_of_too_many_connections_the_silent_ones_are_ended(limited):
    silent = [limited.connect() for _ in range(12)]
    assert limited.call("/api/parse", {"text": "a: 1"}) == {"ok": True, "data": {"a": 1}}
    for connection in silent:
        assert read_all(connection) == b""


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 400_000,
    ],
)
def test_what_is_not_http_is_refused(server, content):
    with server.connect() as connection:
        connection.sendall(content)
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 Bad Request")


def test_invalid_data_after_the_response_ends_the_connection(server):
    lines = ["POST /absent HTTP/1.1", "Transfer-Encoding: chunked", ""]
    connection = server.connect(*lines)
    assert connection.recv(4096).startswith(b"HTTP/1.1 404 Not Found")
    connection.sendall(b"zzz\r\n")
    read_all(connection)


def test_a_client_that_leaves_while_it_sends_is_no_error(server):
    server.connect(POST, "Content-Length: 50", "", content=b"{").close()
    assert server.call("/api/parse", {"text": "a: 1"})["ok"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/", 200),
        ("OPTIONS", "/api/parse", 405),
        ("TRACE", "/", 405),
        ("PUT", "/api/parse", 405),
        ("OPTIONS", "*", 404),
        ("CONNECT", "attacker.example:80", 404),
        ("GET", "http://attacker.example/", 404),
        ("GET", "/static/../application.py", 404),
        ("GET", "/static/%2e%2e/application.py", 404),
        ("GET", "/static/%00", 404),
        ("GET", f"/static/{'a' * 5000}", 404),
        ("GET", "/static/%ff", 404),
        ("GET", "/static/", 404),
        ("GET", "/view/%00", 404),
    ],
)
def test_unusual_methods_and_paths(server, method, path, status):
    answer = read_all(server.connect(f"{method} {path} HTTP/1.1", "Connection: close", ""))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("0-3", 206),
        ("9-1", 400),
        ("999999999-", 416),
        ("-", 400),
        (f"{'9' * 5000}-", 400),
        (",".join(f"{number}-{number}" for number in range(3000)), 200),
    ],
)
def test_ranges_of_files(server, value, status):
    lines = ["GET /static/main.js HTTP/1.1", "Connection: close", f"Range: bytes={value}", ""]
    assert read_all(server.connect(*lines)).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_request_for_a_websocket_is_an_ordinary_request(server):
    upgrade = ["Connection: Upgrade, close", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
    answer = read_all(server.connect("GET /absent HTTP/1.1", *upgrade, ""))
    assert answer.startswith(b"HTTP/1.1 404 ")
