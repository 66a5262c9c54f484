"""Repositories of the test hub: branches, commits, small and large files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


def blob_id(body: bytes) -> str:
    """Return the git hash of a file."""
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


@dataclass(frozen=True)
class Entry:
    """A file of a commit."""

    body: bytes
    large: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()

    @property
    def pointer(self) -> bytes:
        head = "version https://git-lfs.github.com/spec/v1"
        return f"{head}\noid sha256:{self.sha256}\nsize {len(self.body)}\n".encode()

    def row(self, path: str) -> dict[str, object]:
        """Return a row of the file list, in the format of the Hub."""
        oid = blob_id(self.pointer if self.large else self.body)
        row: dict[str, object] = {
            "type": "file",
            "path": path,
            "size": len(self.body),
            "oid": oid,
        }
        if self.large:
            size = {"size": len(self.body), "pointerSize": len(self.pointer)}
            row["lfs"] = {"oid": self.sha256, **size}
        return row


@dataclass
class Repo:
    """A repository. Every commit contains all files."""

    name: str
    private: bool = False
    gated: bool = False
    accepted: bool = False
    """Whether the terms of a gated repository were accepted."""
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, Entry]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commit("main", {".gitattributes": Entry(b"*.safetensors filter=lfs\n", False)})

    def commit(self, branch: str, files: dict[str, Entry]) -> str:
        listing = "".join(f"{path} {entry.row(path)['oid']}\n" for path, entry in files.items())
        seed = f"{self.name}{len(self.commits)}{self.branches.get(branch)}{listing}"
        sha = hashlib.sha1(seed.encode()).hexdigest()
        self.commits[sha] = dict(files)
        self.branches[branch] = sha
        return sha

    def put(self, branch: str = "main", **files: bytes) -> str:
        """Add a commit with further files; `__` in a name stands for a dot."""
        return self.add({name.replace("__", "."): body for name, body in files.items()}, branch)

    def add(self, files: dict[str, bytes], branch: str = "main") -> str:
        known = dict(self.commits[self.branches[branch]])
        for path, body in files.items():
            known[path] = Entry(body, path.endswith((".safetensors", ".bin", ".pt")))
        return self.commit(branch, known)

    def find(self, revision: str) -> str | None:
        if revision in self.commits:
            return revision
        return self.branches.get(revision)
