"""Validation of repository names, revisions, hashes and file names.

Responses of a hub may be hostile: commits, file names and branches become parts of paths in the
cache, so each is validated before it is used.
"""

from __future__ import annotations

import re
from typing import Any

from zoo.errors import HubError, truncate

_REPO = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9_][A-Za-z0-9._-]*")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*(?:/[A-Za-z0-9_][A-Za-z0-9._+-]*)*")
_PATH_PART = re.compile(r"[^\x00-\x1f\x7f/\\:*?\"<>|]{1,255}")
_HEX = {"commit": 40, "git blob": 40, "sha256": 64}


def validate_repo_id(text: str, original: str | None = None) -> str:
    """Validate `org/name`; `original` is the text to show in the message."""
    invalid = not _REPO.fullmatch(text) or len(text) > 96 or "--" in text or ".." in text
    if invalid or text.endswith((".", "-", ".git")) or any(p[-1] in ".-" for p in text.split("/")):
        raise HubError(
            f"'{truncate(original or text, 100)}' is not a repository name; expected ORG/NAME with "
            "letters, digits and single . _ -, for example zoo-team/bahdanau-reversal"
        )
    return text


def validate_revision(text: str) -> str:
    """Validate the name of a branch or tag, or a commit."""
    dotted = any(part.endswith((".", ".lock")) for part in text.split("/"))
    if not _REVISION.fullmatch(text) or len(text) > 200 or ".." in text or dotted:
        raise HubError(
            f"'{truncate(text, 100)}' is not a revision; expected a branch, a tag or a commit"
        )
    return text


def is_commit(text: str) -> bool:
    return _is_hex(text, _HEX["commit"])


def validate_digest(value: Any, kind: str, where: str) -> str:
    """Validate a commit or a hash in lower-case hexadecimal."""
    length = _HEX[kind]
    if not isinstance(value, str) or not _is_hex(value, length):
        raise HubError(
            f"{where}: {truncate(repr(value), 80)} is not a {kind} of {length} hexadecimal digits; "
            "nothing was written"
        )
    return value


def validate_file_name(value: Any, where: str) -> str:
    """Validate a file path in a repository, which must not lead out of its directory."""
    is_text = isinstance(value, str) and len(value) <= 1_000
    parts = value.split("/") if is_text else []
    safe = all(_PATH_PART.fullmatch(part) and part.strip(" .") for part in parts)
    try:
        short = all(len(part.encode()) <= 255 for part in parts)
    except UnicodeEncodeError:
        short = False
    if not is_text or not safe or not short:
        raise HubError(
            f"{where}: {truncate(repr(value), 80)} is not a valid file name; nothing was written"
        )
    return str(value)


def validate_shard_name(value: Any, where: str) -> str:
    """Validate the file name of a shard."""
    name = validate_file_name(value, where)
    if "/" in name or not name.endswith(".safetensors"):
        raise HubError(
            f"{where}: shard {truncate(repr(name), 80)} must be a .safetensors file next to it"
        )
    return name


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and all(c in "0123456789abcdef" for c in text)
