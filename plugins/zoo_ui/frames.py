"""Messages between the server and its worker processes: JSON with its length before it.

The body of a request follows the message as it was received, so that only the worker parses it.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

LENGTH_BYTES = 8


def encode_frame(message: Any) -> bytes:
    """Return a message as bytes; `body_bytes` in it is the length of a body that follows."""
    payload = json.dumps(message, separators=(",", ":"), default=str).encode()
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


def read_frame(stream: BinaryIO) -> Any:
    """Return the next message of a stream; None at its end."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    message = json.loads(stream.read(int.from_bytes(head, "big")))
    if "body_bytes" in message:
        message["arguments"]["body"] = stream.read(message["body_bytes"])
    return message
