"""Bodies of requests: JSON of limited size and depth, whose text can be sent back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from zoo.errors import ZooError

MAX_BYTES = 2_000_000
MAX_UPLOAD_BYTES = 64_000_000
MAX_DEPTH = 80  # specs have 64
MAX_VALUES = 60_000  # specs have 20,000
_TYPES = {str: "a text", int: "an integer", dict: "a mapping", list: "a list"}


class Answer(Response):
    """JSON in ASCII, so that every text can be encoded.

    Raises:
        ZooError: if a number is not finite, which JSON cannot express.
    """

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
        except ValueError:
            message = "the result has a number that is not finite, which JSON cannot express"
            raise ZooError(message) from None


async def read_bytes(request: Request, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the body of a request.

    Raises:
        ZooError: if it is larger than the limit; also before it is read, if its length is known.
    """
    too_large = f"the request has more than {max_bytes:,} bytes, which is the limit"
    length = request.headers.get("content-length", "0")
    if int(length) > max_bytes:
        raise ZooError(too_large)
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > max_bytes:
            raise ZooError(too_large)
    return bytes(content)


def load_json(content: bytes) -> dict[str, Any]:
    """Return the JSON object in the body of a request.

    Raises:
        ZooError: if it is not a JSON object in UTF-8, or is nested too deeply, has too many values,
            a number that is not finite, or a text with half of a surrogate pair.
    """
    try:
        body = json.loads(content.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ZooError("the request is not valid JSON") from None
    _check_values(body)
    if not isinstance(body, dict):
        raise ZooError("the request should be a JSON object")
    if b"\\u" in content:  # the only way to write a surrogate in UTF-8
        try:
            json.dumps(body, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            message = "the request has a text with half of a surrogate pair, which is not Unicode"
            raise ZooError(message) from None
    return body


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_values(body: Any) -> None:
    """Raise ZooError if a value has too many values or levels."""
    level, total = [body], 0
    for _ in range(MAX_DEPTH):
        total += len(level)
        if total > MAX_VALUES:
            raise ZooError(f"the request has more than {MAX_VALUES:,} values, which is the limit")
        found: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                found += value.values()
            elif isinstance(value, list):
                found += value
        if not found:
            return
        level = found
    raise ZooError(f"the request is nested more than {MAX_DEPTH} levels deep")


def read_fields(body: Any, **types: type) -> list[Any]:
    """Return the values of keys, in their order.

    Raises:
        ZooError: if a key is missing or its value has another type; the keys are named.
    """
    if not isinstance(body, Mapping):
        raise ZooError(f"the request has {_describe(body)} in place of a mapping")
    for key, expected in types.items():
        if key not in body:
            raise ZooError(f"the request has no key '{key}'")
        if not isinstance(body[key], expected) or isinstance(body[key], bool):
            raise ZooError(f"'{key}' should be {_TYPES[expected]}")
    return [body[key] for key in types]


def _describe(value: Any) -> str:
    return _TYPES.get(type(value), "a value")


def read_path(body: Mapping[str, Any]) -> list[str | int]:
    """Return the key 'path': keys and indices, from the spec down to a value.

    Raises:
        ZooError: if it is something else.
    """
    (path,) = read_fields(body, path=list)
    is_valid = 0 < len(path) <= MAX_DEPTH and all(type(key) in (str, int) for key in path)
    if not is_valid:
        raise ZooError(f"'path' should be a list of 1 to {MAX_DEPTH} keys and indices")
    found: list[str | int] = path
    return found
