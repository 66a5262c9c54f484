"""How models of another library come in and go out: what a plugin answers to `zoo_importers`."""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo.errors import ZooError
from zoo.interfaces.tensors import TensorReader

Config = Mapping[str, Any]
"""A ``config.json``, as data. It comes from a stranger: look things up in it, never run them."""


class Importer(abc.ABC):
    """One kind of model of another library: its config to a spec, its tensors by a map.

    `zoo import DIR` asks every importer whether it `matches` the config and takes the one that
    does. A ZooError from `spec` is the place to say that a config asks for what the zoo lacks.
    """

    name: str
    """What ``zoo export --to`` calls it; most often the config's ``model_type``."""

    @abc.abstractmethod
    def matches(self, config: Config) -> bool:
        """Whether a model with this config is of this kind."""

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        """The config together with what else the folder says of the model.

        `weights` knows the form of every tensor and reads those it is asked for.
        """
        return config

    @abc.abstractmethod
    def spec(self, config: Config) -> dict[str, Any]:
        """The whole spec of the model, as a YAML file would have it."""

    @abc.abstractmethod
    def map(self, config: Config) -> str | os.PathLike[str] | Mapping[str, Any]:
        """The map for the weights: a YAML file of the plugin, or the same as data."""

    def tokenizers(self, folder: Path, config: Config) -> Mapping[str, Path]:
        """The ``tokenizer.json`` for 'source' and for 'target'; none if there is none."""
        file = folder / "tokenizer.json"
        return {"source": file, "target": file} if file.is_file() else {}

    def config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        """The config for an export of a model with this resolved spec.

        `original` is what the model came with, empty if it was not imported.
        """
        raise ZooError(f"importer '{self.name}' brings models in, but cannot take them out")

    def files(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """JSON files that an export has beside its config, by their path in the folder."""
        return {}
