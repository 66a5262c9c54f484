"""Messages between the server and its worker processes: JSON with its length before it."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

LENGTH_BYTES = 8


def encode_frame(message: Any) -> bytes:
    """Return a message as bytes."""
    payload = json.dumps(message, separators=(",", ":"), default=str).encode()
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


def read_frame(stream: BinaryIO) -> Any:
    """Return the next message of a stream; None at its end."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    payload = stream.read(int.from_bytes(head, "big"))
    return json.loads(payload)
