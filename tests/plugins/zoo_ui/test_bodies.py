"""Bodies of requests, sent as they are to a running server."""

import json

import pytest
from ui_kit import read_all


def _post(server, path, content):
    lines = [f"POST {path} HTTP/1.1", "Connection: close", f"Content-Length: {len(content)}", ""]
    head, _, answer = read_all(server.connect(*lines, content=content)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n"), head
    return json.loads(answer)


SURROGATE = "the request has a text with half of a surrogate pair, which is not Unicode"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/api/parse", rb'{"text": "\ud800"}'),
        ("/api/spec", rb'{"source": "\uDBff"}'),
        ("/api/check", rb'{"page": "\ud800", "sequence": 1, "data": {}}'),
        ("/api/check", rb'{"page": "a", "sequence": 1, "data": {"\udc00": 1}}'),
        ("/api/part", rb'{"data": {}, "path": ["name"], "values": ["\ud800"]}'),
        ("/api/part", rb'{"data": {}, "path": ["\ud800"], "values": [1]}'),
        ("/api/laws", rb'{"run": "\ud800", "kind": "a", "plugin": "a", "name": "a"}'),
    ],
)
def test_half_of_a_surrogate_pair_is_rejected(server, path, content):
    assert _post(server, path, content) == {"error": SURROGATE}


def test_a_whole_surrogate_pair_is_text(server):
    answer = _post(server, "/api/parse", rb'{"text": "a: \"\ud83d\ude00\""}')
    assert answer == {"ok": True, "data": {"a": "😀"}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text=a",
        b"{",
        b'{"text": NaN}',
        b'{"text": -Infinity}',
        b'{"text": "\xed\xa0\x80"}',
        b'{"text": "\xff"}',
        '{"text": "a"}'.encode("utf-16"),
        b'{"text": ' + b"[" * 100_000,
        b'{"text": ' + b"9" * 5_000 + b"}",
    ],
)
def test_what_is_not_json_is_rejected(server, content):
    assert _post(server, "/api/parse", content) == {"error": "the request is not valid JSON"}


@pytest.mark.parametrize("content", [b"[]", b"null", b"5", b'"text"'])
def test_other_json_than_an_object_is_rejected(server, content):
    message = "the request should be a JSON object"
    for path in ("/api/parse", "/api/spec"):
        assert _post(server, path, content) == {"error": message}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("[" * 500 + "]" * 500, "the request is nested more than 80 levels deep"),
        ('{"a":' * 80 + "1" + "}" * 80, "the request is nested more than 80 levels deep"),
        (f"[{'[],' * 60_000}1]", "the request has more than 60,000 values, which is the limit"),
        (
            json.dumps({str(number): 1 for number in range(60_000)}),
            "the request has more than 60,000 values, which is the limit",
        ),
    ],
)
def test_depth_and_number_of_values_are_limited(server, data, message):
    content = f'{{"page": "deep", "sequence": 1, "data": {data}}}'.encode()
    assert _post(server, "/api/check", content) == {"error": message}


@pytest.mark.parametrize(("path", "limit"), [("/api/parse", 2_000_000), ("/api/run", 64_000_000)])
def test_a_body_that_is_too_large_is_refused_before_it_is_sent(server, path, limit):
    length = f"Content-Length: {limit + 1}"
    answer = read_all(server.connect(f"POST {path} HTTP/1.1", "Connection: close", length, ""))
    assert f"the request has more than {limit:,} bytes, which is the limit".encode() in answer


TOO_LARGE = b'{"error":"the request has more than 2,000,000 bytes, which is the limit"}'


def test_a_body_without_a_length_is_refused_where_it_becomes_too_large(server):
    lines = ["POST /api/parse HTTP/1.1", "Transfer-Encoding: chunked", ""]
    with server.connect(*lines) as connection:
        for _ in range(3):
            connection.sendall(b"f4240\r\n" + b" " * 1_000_000 + b"\r\n")
        answer = b""
        while not answer.endswith(TOO_LARGE):
            chunk = connection.recv(4096)
            assert chunk, answer
            answer += chunk


def test_numbers_that_json_does_not_have_are_an_error(server):
    message = "the result has a number that is not finite, which JSON cannot express"
    for text in ("a: .nan", "a: [.inf]"):
        assert server.call("/api/parse", {"text": text}) == {"error": message}


@pytest.mark.parametrize("path", [5, [], ["a"] * 81, [{}], [True], [1.5], None])
def test_a_path_is_a_list_of_keys_and_indices(server, path):
    for request in ("/api/part", "/api/measure"):
        body = {"data": {}, "path": path, "values": [1]}
        assert server.call(request, body)["error"].startswith("'path' should be a list")
