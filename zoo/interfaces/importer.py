"""The interface of importers, which a plugin returns from `zoo_importers`."""

from __future__ import annotations

import abc
import os
from collections.abc import Collection, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from torch import Tensor

from zoo.errors import ZooError
from zoo.interfaces.tensors import TensorReader

Config = Mapping[str, Any]
"""The content of a ``config.json``. It is untrusted data; never execute anything in it."""


class Importer(abc.ABC):
    """Converts one model type of another library: `spec` converts its config, `map` its tensors.

    `zoo import DIR` uses the importer that `matches` the config. `spec` should raise ZooError for
    unsupported configs.

    Laws:
        it matches no other model type; the spec of `test_config` is valid; an invalid value raises
        ZooError with the name of the key; the map uses every tensor once and rejects others; the
        config of an export gives the exported spec.
    """

    name: str
    """The name for ``zoo export --to``, usually the config's ``model_type``."""

    @property
    def test_config(self) -> Config | None:
        """The config of a small model, for the laws; may be a class attribute."""
        return None

    @property
    def config_keys(self) -> Set[str]:
        """The keys of a config that it reads, to find the importer nearest to a model type that no
        importer supports; by default those of `test_config`."""
        return set(self.test_config or ())

    @abc.abstractmethod
    def matches(self, config: Config) -> bool:
        """Return whether this importer supports the model type of a config."""

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        """Return the config with information from other files of the folder, but not its weights.

        It is called before the weights of a repository are downloaded, and it should raise ZooError
        for what these files have and the importer does not support. `ignore` are keys that the user
        leaves out; `config` does not have them.
        """
        return config

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        """Return the config of `read_folder` with information from the tensors.

        `weights` has the shape and dtype of every tensor and reads single tensors on request.
        """
        return config

    @abc.abstractmethod
    def spec(self, config: Config) -> dict[str, Any]:
        """Return the complete spec of the model, as in a YAML file."""

    @abc.abstractmethod
    def map(self, config: Config) -> str | os.PathLike[str] | Mapping[str, Any]:
        """Return the map of the weights: the path of a YAML file, or its content."""

    def weight_folders(self, spec: Mapping[str, Any]) -> Sequence[str]:
        """Return the subfolders with further weights of a model with this spec.

        A tensor of ``FOLDER/model.safetensors`` has the name ``FOLDER/NAME`` in the map.
        """
        return ()

    def tokenizers(self, folder: Path, config: Config) -> Mapping[str, Path | Mapping[str, Any]]:
        """Return the ``tokenizer.json`` for 'source' and 'target', its path or its content.

        The mapping is empty if the folder has none.
        """
        file = folder / "tokenizer.json"
        return {"source": file, "target": file} if file.is_file() else {}

    def chat_template(self, folder: Path, config: Config) -> Mapping[str, Any] | None:
        """Return the chat template of a folder, None without one.

        It is a mapping of ``template``, in the template language of Hugging Face tokenizers, and
        ``tokens``, the special tokens that it refers to by name.
        """
        return None

    def original_outputs(
        self, folder: Path, config: Config, spec: Mapping[str, Any]
    ) -> Mapping[str, Tensor]:
        """Return inputs and outputs of the original in the other library, for random inputs.

        The names are those of ``zoo import --check``: ``batch.KEY`` and ``output.NAME``.
        """
        raise ZooError(f"importer '{self.name}' does not run the original; use --check FILE.npz")

    def config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        """Return the config for the export of a model with this resolved spec.

        `original` is the config the model was imported with, or empty.
        """
        raise ZooError(f"importer '{self.name}' does not support export")

    def files(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return further JSON files of an export: relative path to content."""
        return {}

    def exported_files(self, spec: Mapping[str, Any], original: Config) -> Mapping[str, Any]:
        """Return further JSON files of an export, which may depend on the config the model was
        imported with, or empty; by default `files`."""
        return self.files(spec)
