"""One commit of a repository, from the cache or from the Hub."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from zoo.errors import HubError, suggest
from zoo.hub import names
from zoo.hub.cache import Cache
from zoo.hub.client import HubClient
from zoo.hub.credentials import is_offline
from zoo.hub.lock_file import Pin
from zoo.hub.reference import Reference
from zoo.hub.tree import RepoFile, Tree, fetch_tree, load_tree, save_tree

CONFIG = "config.json"

# Code and pickles are never downloaded.
DATA_SUFFIXES = (
    ".safetensors",
    ".json",
    ".jsonl",
    ".txt",
    ".model",
    ".jinja",
    ".yaml",
    ".md",
    ".svg",
    ".png",
)
_PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".msgpack", ".h5")


@dataclass(frozen=True)
class Options:
    """Options of huggingface_hub, and whether to accept cached files without hashing them."""

    token: str | bool | None = None
    cache_dir: str | os.PathLike[str] | None = None
    local_files_only: bool = False
    force_download: bool = False
    skip_hash_check: bool = False


class Checkout:
    """One commit of a repository. A branch or tag is resolved once."""

    def __init__(self, reference: Reference, options: Options, pin: Pin | None = None) -> None:
        self.repo = reference.repo
        self.revision = reference.revision
        self.options = options
        self.offline = options.local_files_only or is_offline()
        self.cache = Cache(self.repo, options.cache_dir, skip_hash_check=options.skip_hash_check)
        self._client: HubClient | None = None
        self.pin = pin
        self.commit = pin.commit if pin else self._resolve_commit()
        self.tree = self._load_tree()
        if pin:
            pin.check(self.tree)

    @property
    def folder(self) -> Path:
        return self.cache.snapshot(self.commit)

    def fetch(self, file_names: Iterable[str]) -> None:
        """Download and check files that are not in the cache. Raise offline if any is missing."""
        files = [self.tree[name] for name in file_names]
        force = self.options.force_download and not self.offline
        missing = [f for f in files if force or not self.cache.contains(f, self.commit)]
        if missing and self.offline:
            raise HubError(
                f"{self.repo} at {self.commit[:12]} is not complete in the cache "
                f"{self.cache.root}, and offline mode is on; missing or damaged: "
                f"{', '.join(f.name for f in missing)}"
            )
        for file in missing:
            self.cache.fetch(self._get_client(), file, self.commit, force=force)
        for file in files:
            if self.pin and file.sha256 is None:
                self.pin.check_file(file.name, self.folder / file.name)

    def contains(self, file_names: Iterable[str]) -> bool:
        """Return whether the cache contains all of these files, with the expected hashes."""
        return all(self.cache.contains(self.tree[name], self.commit) for name in file_names)

    def read_prefix(self, name: str, count: int) -> bytes:
        """Return the first bytes of a remote file, which cannot be hashed."""
        return self._get_client().read_prefix(self.repo, self.commit, name, count)

    def match_files(self, patterns: Sequence[str]) -> list[str]:
        """Return the data files that match the patterns."""
        for pattern in patterns:
            plain = not set(pattern) & set("*?[")
            if plain and not pattern.endswith(DATA_SUFFIXES):
                raise HubError(
                    f"{pattern} of {self.repo} is not downloaded: only data files are allowed "
                    f"({', '.join(DATA_SUFFIXES)}), no code and no pickles"
                )
        matches = (name for name in self.tree if any(_matches_pattern(name, p) for p in patterns))
        return [name for name in matches if name.endswith(DATA_SUFFIXES)]

    def describe_files(self) -> str:
        """Return the end of a message about a missing file: the files that exist."""
        adapter = "adapter_config.json"
        if adapter in self.tree:
            return (
                f"; it is an adapter of peft: 'hf download {self.repo} --local-dir FOLDER', then "
                "'zoo import FOLDER --base MODEL -o adapter.safetensors'"
            )
        if ggufs := [name for name in self.tree if name.endswith(".gguf")]:
            return f"; it has {ggufs[0]} of llama.cpp; use the repository it was converted from"
        pickles = [name for name in self.tree if name.endswith(_PICKLE_SUFFIXES)]
        if pickles:
            return f"; it has {', '.join(sorted(pickles)[:4])}, but pickles are not supported"
        return suggest("", self.tree) if len(self.tree) < 20 else ""

    def _get_client(self) -> HubClient:
        if self._client is None:
            self._client = HubClient.connect(self.options.token)
        return self._client

    def _resolve_commit(self) -> str:
        """Return the current commit of the revision."""
        if names.is_commit(self.revision):
            return self.revision
        if self.offline:
            cached = self.cache.cached_commit(self.revision)
            if cached is None:
                raise HubError(
                    f"{self.repo} at '{self.revision}' is not in the cache {self.cache.root}, and "
                    "offline mode is on (HF_HUB_OFFLINE, --offline or local_files_only)"
                )
            return cached
        path = f"api/models/{self.repo}/revision/{quote(self.revision, safe='')}"
        response, _ = self._get_client().json(path, self.repo, revision=self.revision)
        sha = response.get("sha") if isinstance(response, dict) else response
        commit = names.validate_digest(sha, "commit", f"{self.repo} at '{self.revision}'")
        self.cache.save_ref(self.revision, commit)
        return commit

    def _load_tree(self) -> Tree:
        cached = load_tree(self.cache.tree(self.commit))
        if cached is not None:
            return cached
        if self.offline:
            return self._tree_from_cache()
        tree = fetch_tree(self._get_client(), self.repo, self.commit)
        save_tree(self.cache.tree(self.commit), tree)
        return tree

    def _tree_from_cache(self) -> Tree:
        """Return the files that another library cached; its blobs are named by their hashes."""
        tree: Tree = {}
        for path in sorted(self.folder.rglob("*")):
            oid = Path(os.readlink(path)).name if path.is_symlink() else ""
            if len(oid) not in (40, 64) or not path.is_file():
                continue
            name = names.validate_file_name(
                path.relative_to(self.folder).as_posix(), str(self.folder)
            )
            large = len(oid) == 64
            tree[name] = RepoFile(name, path.stat().st_size, oid[:40], oid if large else None)
        if not tree:
            raise HubError(
                f"{self.repo} at {self.commit[:12]} is not in the cache {self.cache.root}, and "
                "offline mode is on (HF_HUB_OFFLINE, --offline or local_files_only)"
            )
        return tree


def _matches_pattern(name: str, pattern: str) -> bool:
    """Match directory by directory: `*` does not match `/`."""
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatchcase, parts, patterns))
