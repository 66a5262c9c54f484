"""The files of a repository at one commit: names, sizes and hashes.

A commit does not change, so its file list is requested once and cached as `trees/COMMIT.json`, in
the format of huggingface_hub.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from zoo.errors import HubError, truncate
from zoo.files import atomic_write
from zoo.hub import names
from zoo.hub.client import HubClient
from zoo.hub.credentials import origin

MAX_FILES = 50_000
MAX_PAGES = 200
_FORMAT = 1


@dataclass(frozen=True)
class RepoFile:
    """One file. Large files have a sha256, small files only a git hash."""

    name: str
    size: int
    blob: str
    sha256: str | None = None

    @property
    def oid(self) -> str:
        """Return the name of the blob in the cache."""
        return self.sha256 or self.blob

    def hasher(self) -> Any:
        """Return a hash object whose digest is `oid` for the right bytes."""
        if self.sha256:
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)


Tree = dict[str, RepoFile]


def fetch_tree(client: HubClient, repo: str, commit: str) -> Tree:
    """Request the file list of a commit, and validate every row."""
    rows: list[RepoFile] = []
    where = f"{repo} at {commit[:12]}"
    url: str | None = f"api/models/{repo}/tree/{commit}?recursive=true"
    for _ in range(MAX_PAGES):
        if url is None:
            return _index_by_name(rows, where)
        page, next_link = client.json(url, repo, revision=commit)
        if not isinstance(page, list):
            raise HubError(f"{where}: the file list is not a list")
        rows += [_parse_row(row, where) for row in page if not _is_folder(row)]
        if len(rows) > MAX_FILES:
            break
        url = _next_page(client, next_link)
    raise HubError(f"{where} has too many files ({len(rows):,} or more)")


def load_tree(path: Path) -> Tree | None:
    """Return the cached file list of a commit, or None without a valid one."""
    try:
        content = path.read_bytes()
        digest = _digest_file(path)
        if digest.exists() and digest.read_text(encoding="ascii") != _sha256(content):
            return None
        cached = json.loads(content)
        rows = [
            _parse_row(
                {
                    "path": name,
                    "size": entry["size"],
                    "oid": entry["blob_id"],
                    "lfs": {"oid": entry["lfs_sha256"]} if entry.get("lfs_sha256") else None,
                },
                str(path),
            )
            for name, entry in cached["files"].items()
        ]
        return _index_by_name(rows, str(path)) if cached["format_version"] == _FORMAT else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError, HubError):
        return None


def save_tree(path: Path, tree: Tree) -> None:
    """Cache the file list of a commit, if the cache is writable."""
    files = {}
    for file in tree.values():
        entry: dict[str, Any] = {"size": file.size, "blob_id": file.blob}
        if file.sha256:
            entry |= {"lfs_sha256": file.sha256, "lfs_size": file.size}
        files[file.name] = entry
    content = json.dumps({"format_version": _FORMAT, "files": files}).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as temp_path:
            temp_path.write_bytes(content)
        with atomic_write(_digest_file(path)) as temp_path:
            temp_path.write_text(_sha256(content), encoding="ascii")
    except OSError:
        return


def _digest_file(path: Path) -> Path:
    """Return the file with the hash of a cached file list, whose format is not ours."""
    return path.with_name(f".{path.name}.sha256")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_folder(row: Any) -> bool:
    return isinstance(row, dict) and row.get("type") == "directory"


def _parse_row(row: Any, where: str) -> RepoFile:
    if not isinstance(row, dict):
        raise HubError(f"{where}: a row of the file list is not an object")
    name = names.validate_file_name(row.get("path"), where)
    here = f"{where}: {name}"
    large = row.get("lfs")
    if large is not None and not isinstance(large, dict):
        raise HubError(f"{here}: 'lfs' is not an object")
    size = row.get("size")
    if type(size) is not int or not 0 <= size < 1 << 50:
        raise HubError(f"{here}: {truncate(repr(size), 80)} is not a valid size")
    sha256 = names.validate_digest(large.get("oid"), "sha256", here) if large else None
    return RepoFile(name, size, names.validate_digest(row.get("oid"), "git blob", here), sha256)


def _index_by_name(rows: Iterable[RepoFile], where: str) -> Tree:
    """Index files by name. Raise if a name is repeated or is also a directory."""
    tree: Tree = {}
    for file in rows:
        if file.name in tree:
            raise HubError(f"{where}: '{file.name}' is listed twice")
        tree[file.name] = file
    for name in tree:
        for folder in _parent_folders(name):
            if folder in tree:
                raise HubError(f"{where}: '{folder}' is listed as a file and as a directory")
    return tree


def _parent_folders(name: str) -> Iterator[str]:
    head = name.rpartition("/")[0]
    while head:
        yield head
        head = head.rpartition("/")[0]


def _next_page(client: HubClient, next_link: str | None) -> str | None:
    if not next_link:
        return None
    url = urljoin(f"{client.address}/", next_link)
    if origin(url) != origin(client.address):
        raise HubError(
            "the next page of the Hub's file list is on another host, which is not allowed"
        )
    return url
