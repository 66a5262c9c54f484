"""How much may be made of a file, so that a small hostile file does not take much memory."""

from __future__ import annotations

import os

from zoo.errors import DataError, ZooError, truncate

VARIABLE = "ZOO_MAX_BYTES"
MAX_BYTES = 256 * 1024**2
MAX_RATIO = 100
"""Content of more bytes than `MAX_BYTES` has at most this many times the size of its file."""


def max_content(file_size: int, smallest: int | None = None, ratio: int | None = None) -> int:
    """Return the largest number of bytes that may be decompressed or decoded from a file.

    It is the largest of `smallest`, `ratio` times the size of the file, and the environment
    variable ``ZOO_MAX_BYTES``.

    Args:
        smallest: default: `MAX_BYTES`.
        ratio: default: `MAX_RATIO`.

    Raises:
        ZooError: if the variable is not a number.
    """
    raised = os.environ.get(VARIABLE) or "0"
    if not raised.isdecimal() or len(raised) > 18:
        raise ZooError(f"{VARIABLE} is '{truncate(raised, 40)}'; expected a number of bytes")
    bound = max(
        MAX_BYTES if smallest is None else smallest,
        (MAX_RATIO if ratio is None else ratio) * file_size,
    )
    return max(bound, int(raised))


def too_large(message: str, origin: str = "") -> DataError:
    """Return the error of content that is larger than `max_content`.

    Args:
        message: what is too large, such as "its arrays have 9 bytes; the limit is 8".
        origin: the file.
    """
    return DataError(f"{message}; if you trust the file, set {VARIABLE} to raise the limit", origin)
