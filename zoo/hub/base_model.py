"""The model that a training starts from, or whose spec another one extends, by its name."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from zoo.artifact.hashing import check_files
from zoo.artifact.mapped_file import Artifact, open_artifact
from zoo.data.files import expand_path
from zoo.errors import ZooError
from zoo.hub.models import base_reference, named_path
from zoo.hub.reference import is_repository


@dataclass(frozen=True)
class BaseModel:
    """An open model with weights.

    Attributes:
        name: its name, as it was given.
        commit: its commit on the Hub; None if it is not from there.
        reference: the name with which another machine finds it; None for a local file.
    """

    name: str
    artifact: Artifact = field(repr=False)
    commit: str | None = None
    reference: str | None = None

    @property
    def sha256(self) -> str:
        """The hash of the model, as ``zoo info`` prints it; of format 1, that of its file."""
        header = self.artifact.header
        return header.identity or self.artifact.files[0].sha256()

    def check(self, sha256: str | None = None) -> None:
        """Raise ZooError if the weights are damaged, or the model does not have this hash."""
        if self.artifact.header.base is not None:
            raise ZooError(
                f"{self.name} has an adapter only, without its base; merge it first: "
                f"zoo merge {self.name} -o merged.safetensors"
            )
        check_files(self.artifact.files)
        if sha256 is None or sha256 == self.sha256:
            return
        files = self.artifact.files
        if len(files) > 1 or files[0].sha256() != sha256:
            raise ZooError(
                f"{self.name} has the hash {self.sha256}, but {sha256} is expected; the model has "
                "changed"
            )

    def record(self) -> dict[str, Any]:
        """Return name, commit and hash, with the model that this one was trained from, as JSON."""
        provenance = self.artifact.header.provenance
        record: dict[str, Any] = {"name": self.name, "sha256": self.sha256}
        if self.commit is not None:
            record["commit"] = self.commit
        if isinstance(provenance.get("imported"), str):
            keys = ("imported", "commit", "importer")
            record["imported"] = {key: provenance[key] for key in keys if key in provenance}
        if isinstance(provenance.get("base"), dict):
            record["base"] = provenance["base"]
        return record


def find_base(name: str) -> BaseModel:
    """Open a model by name; download it if it is on the Hub.

    Args:
        name: a file or folder, a shipped name, or ``org/name[@revision]``.

    Raises:
        ZooError: if there is no such model, or it is not a model of this library.
    """
    path, reference, commit = base_reference(_expand(name))
    return BaseModel(name, open_artifact(path), commit, reference)


def model_spec(name: str) -> dict[str, Any]:
    """Return the spec of a model with weights: a file or folder, a shipped name, or ``org/name``.

    Raises:
        ZooError: if there is no such model.
    """
    return find_base(name).artifact.header.spec


def repository(name: str) -> str | None:
    """Return ``org/name`` if a model is on the Hub, for a model card; None for other models."""
    if named_path(_expand(name)) is not None or not is_repository(name):
        return None
    return name.removeprefix("hub:").partition("@")[0]


def _expand(name: str) -> str:
    """Return a name; in a path, ``~`` and variables at its start are replaced."""
    return os.fspath(expand_path(name)) if name.startswith(("~", "$")) else name
