"""Names that come from people and from hubs, checked before anything is done with them.

A hub's answer may be hostile: a commit, a file name or a branch becomes part of a path in the
cache, so each has to look exactly like what it claims to be.
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
    """``org/name``, as the Hub allows it; a message repeats what was said, if that was more."""
    bad = not _REPO.fullmatch(text) or len(text) > 96 or "--" in text or ".." in text
    if bad or text.endswith((".", "-", ".git")) or any(p[-1] in ".-" for p in text.split("/")):
        raise HubError(
            f"'{truncate(original or text, 100)}' is no repository; one reads ORG/NAME, in letters, "
            "digits and single . _ - between them, for example zoo-team/bahdanau-reversal"
        )
    return text


def validate_revision(text: str) -> str:
    """A branch, a tag or a commit."""
    dotted = any(part.endswith((".", ".lock")) for part in text.split("/"))
    if not _REVISION.fullmatch(text) or len(text) > 200 or ".." in text or dotted:
        raise HubError(
            f"'{truncate(text, 100)}' is no revision; one is a branch, a tag or a commit, as main"
        )
    return text


def is_commit(text: str) -> bool:
    return _is_hex(text, _HEX["commit"])


def validate_digest(value: Any, kind: str, where: str) -> str:
    """A commit or a hash that a hub or a file claims, in lower-case hexadecimal."""
    length = _HEX[kind]
    if not isinstance(value, str) or not _is_hex(value, length):
        raise HubError(
            f"{where}: {truncate(repr(value), 80)} is no {kind} of {length} hexadecimal digits; "
            "nothing was written"
        )
    return value


def validate_file_name(value: Any, where: str) -> str:
    """The path of a file inside a repository, that stays inside whatever folder it is put in."""
    fits = isinstance(value, str) and len(value) <= 1_000
    parts = value.split("/") if fits else []
    safe = all(_PATH_PART.fullmatch(part) and part.strip(" .") for part in parts)
    try:
        short = all(len(part.encode()) <= 255 for part in parts)
    except UnicodeEncodeError:
        short = False
    if not fits or not safe or not short:
        raise HubError(
            f"{where}: {truncate(repr(value), 80)} is no file name the zoo accepts; "
            "nothing was written"
        )
    return str(value)


def validate_shard_name(value: Any, where: str) -> str:
    """The name of one file of a sharded model: plain, and of safetensors."""
    name = validate_file_name(value, where)
    if "/" in name or not name.endswith(".safetensors"):
        raise HubError(
            f"{where}: shard {truncate(repr(name), 80)} should be a .safetensors file beside it"
        )
    return name


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and all(c in "0123456789abcdef" for c in text)
