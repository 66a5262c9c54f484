"""A repository at one commit, as far as the cache has it and the hub gives it."""

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

# What a model is made of. Code and pickles are never fetched, whoever asks for them.
DATA_SUFFIXES = (
    ".safetensors",
    ".json",
    ".jsonl",
    ".txt",
    ".model",
    ".yaml",
    ".md",
    ".svg",
    ".png",
)
_PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".msgpack", ".h5")


@dataclass(frozen=True)
class Options:
    """The conventional arguments: where from, where to, and with what token; and whether files
    that are in the cache already are taken without having been hashed."""

    token: str | bool | None = None
    cache_dir: str | os.PathLike[str] | None = None
    local_files_only: bool = False
    force_download: bool = False
    skip_hash_check: bool = False


class Checkout:
    """One commit of one repository; every file of it comes from that commit."""

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

    def fetch(self, wanted: Iterable[str]) -> None:
        """Have the named files in the snapshot, checked; says all that are missing offline."""
        files = [self.tree[name] for name in wanted]
        force = self.options.force_download and not self.offline
        missing = [f for f in files if force or not self.cache.contains(f, self.commit)]
        if missing and self.offline:
            raise HubError(
                f"{self.repo} at {self.commit[:12]} is not complete in the cache "
                f"{self.cache.root}, and there is no going online; missing or damaged: "
                f"{', '.join(f.name for f in missing)}"
            )
        for file in missing:
            self.cache.fetch(self._get_client(), file, self.commit, force=force)

    def contains(self, wanted: Iterable[str]) -> bool:
        """Whether the snapshot has all of these already, checked."""
        return all(self.cache.contains(self.tree[name], self.commit) for name in wanted)

    def read_prefix(self, name: str, count: int) -> bytes:
        """The first bytes of a file, as the hub sends them: no hash vouches for a part."""
        return self._get_client().read_prefix(self.repo, self.commit, name, count)

    def match_files(self, patterns: Sequence[str]) -> list[str]:
        """The data files that the patterns name."""
        for pattern in patterns:
            plain = not set(pattern) & set("*?[")
            if plain and not pattern.endswith(DATA_SUFFIXES):
                raise HubError(
                    f"{pattern} of {self.repo} is not fetched: the zoo takes data only "
                    f"({', '.join(DATA_SUFFIXES)}), no code and no pickles"
                )
        hits = (name for name in self.tree if any(_matches_pattern(name, p) for p in patterns))
        return [name for name in hits if name.endswith(DATA_SUFFIXES)]

    def describe_files(self) -> str:
        """The tail of a message about a file that is not there: what is."""
        pickles = [name for name in self.tree if name.endswith(_PICKLE_SUFFIXES)]
        if pickles:
            return f"; it has {', '.join(sorted(pickles)[:4])}, and the zoo never unpickles"
        return suggest("", self.tree) if len(self.tree) < 20 else ""

    def _get_client(self) -> HubClient:
        if self._client is None:
            self._client = HubClient.connect(self.options.token)
        return self._client

    def _resolve_commit(self) -> str:
        """The commit that the revision stands for now; asked once."""
        if names.is_commit(self.revision):
            return self.revision
        if self.offline:
            kept = self.cache.cached_commit(self.revision)
            if kept is None:
                raise HubError(
                    f"{self.repo} at '{self.revision}' is not in the cache {self.cache.root}, and "
                    "there is no going online (HF_HUB_OFFLINE, --offline or local_files_only)"
                )
            return kept
        path = f"api/models/{self.repo}/revision/{quote(self.revision, safe='')}"
        answer, _ = self._get_client().json(path, self.repo, revision=self.revision)
        told = answer.get("sha") if isinstance(answer, dict) else answer
        commit = names.validate_digest(told, "commit", f"{self.repo} at '{self.revision}'")
        self.cache.save_ref(self.revision, commit)
        return commit

    def _load_tree(self) -> Tree:
        kept = load_tree(self.cache.tree(self.commit))
        if kept is not None:
            return kept
        if self.offline:
            return self._tree_from_cache()
        tree = fetch_tree(self._get_client(), self.repo, self.commit)
        save_tree(self.cache.tree(self.commit), tree)
        return tree

    def _tree_from_cache(self) -> Tree:
        """What another library left in the cache; its blobs are named by their hashes."""
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
                "there is no going online (HF_HUB_OFFLINE, --offline or local_files_only)"
            )
        return tree


def _matches_pattern(name: str, pattern: str) -> bool:
    """Folder by folder: ``*`` stays within one."""
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))
