"""The files of a repository at one commit: what they are called, how long, and their hashes.

A commit never changes, so its listing is asked for once and kept in the cache, in the form and
place in which huggingface_hub keeps it too: ``trees/COMMIT.json``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from zoo.errors import HubError
from zoo.files import atomic_write
from zoo.hub import names
from zoo.hub.client import HubClient
from zoo.hub.credentials import origin

MAX_FILES = 50_000
MAX_PAGES = 200
_FORMAT = 1


@dataclass(frozen=True)
class RepoFile:
    """One file: large ones are known by their sha256, small ones by the hash git gives them."""

    name: str
    size: int
    blob: str
    sha256: str | None = None

    @property
    def oid(self) -> str:
        """What the cache calls it."""
        return self.sha256 or self.blob

    def hasher(self) -> Any:
        """A hash that comes to ``oid`` once it has seen the right bytes."""
        if self.sha256:
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)


Tree = dict[str, RepoFile]


def fetch_tree(client: HubClient, repo: str, commit: str) -> Tree:
    """The listing as the hub gives it, every row checked before any is used."""
    rows: list[RepoFile] = []
    where = f"{repo} at {commit[:12]}"
    url: str | None = f"api/models/{repo}/tree/{commit}?recursive=true"
    for _ in range(MAX_PAGES):
        if url is None:
            return _index_by_name(rows, where)
        page, next_link = client.json(url, repo, revision=commit)
        if not isinstance(page, list):
            raise HubError(f"{where}: the list of files is no list")
        rows += [_parse_row(row, where) for row in page if not _is_folder(row)]
        if len(rows) > MAX_FILES:
            break
        url = _next_page(client, next_link)
    raise HubError(f"{where} has more files than a model has ({len(rows):,} and more)")


def load_tree(path: Path) -> Tree | None:
    """A listing kept in the cache; None if there is none, or none that can be used."""
    try:
        kept = json.loads(path.read_bytes())
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
            for name, entry in kept["files"].items()
        ]
        return _index_by_name(rows, str(path)) if kept["format_version"] == _FORMAT else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError, HubError):
        return None


def save_tree(path: Path, tree: Tree) -> None:
    """Write the listing beside the snapshots; a cache that cannot be written goes without."""
    files = {}
    for file in tree.values():
        entry: dict[str, Any] = {"size": file.size, "blob_id": file.blob}
        if file.sha256:
            entry |= {"lfs_sha256": file.sha256, "lfs_size": file.size}
        files[file.name] = entry
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as temp_path:
            temp_path.write_text(json.dumps({"format_version": _FORMAT, "files": files}))
    except OSError:
        return


def _is_folder(row: Any) -> bool:
    return isinstance(row, dict) and row.get("type") == "directory"


def _parse_row(row: Any, where: str) -> RepoFile:
    if not isinstance(row, dict):
        raise HubError(f"{where}: a row of the list of files is no mapping")
    name = names.validate_file_name(row.get("path"), where)
    here = f"{where}: {name}"
    large = row.get("lfs")
    if large is not None and not isinstance(large, dict):
        raise HubError(f"{here}: its row has not the right form")
    size = row.get("size")
    if type(size) is not int or not 0 <= size < 1 << 50:
        raise HubError(f"{here}: {size!r} is no size")
    sha256 = names.validate_digest(large.get("oid"), "sha256", here) if large else None
    return RepoFile(name, size, names.validate_digest(row.get("oid"), "git blob", here), sha256)


def _index_by_name(rows: Iterable[RepoFile], where: str) -> Tree:
    """By name; two files of one name, or a file that is also a folder, cannot be written."""
    tree: Tree = {}
    for file in rows:
        if file.name in tree:
            raise HubError(f"{where}: '{file.name}' is listed twice")
        tree[file.name] = file
    for name in tree:
        for folder in _parent_folders(name):
            if folder in tree:
                raise HubError(f"{where}: '{folder}' is listed as a file and as a folder")
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
        raise HubError("the hub's list of files goes on at another host; refused")
    return url
