"""Model: the assembly of the other parts."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import nn

from zoo.errors import ZooError
from zoo.interfaces.component import Component
from zoo.interfaces.data import Batch, GenerationOutput, Memory, Outputs
from zoo.interfaces.decoder import Decoder
from zoo.interfaces.embedding import Embedding, to_eos_ids
from zoo.interfaces.filter import Filter
from zoo.interfaces.sampler import Sampler


@dataclass(frozen=True)
class GenerationInputs:
    """What generation needs of a model that has read its input; one symbol ends it, or several.

    Shapes:
        prompt [B, P]: what was said before, bos first, padded on the right; bos alone if None;
        lengths [B]: how much of each prompt is real; up to its padding if None.
    """

    decoder: Decoder
    memory: Memory
    bos: int
    eos: int | Sequence[int]
    pad: int
    prompt: torch.Tensor | None = None
    lengths: torch.Tensor | None = None

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return to_eos_ids(self.eos)


class Model(Component, nn.Module, ABC):
    """Reads batches, gives outputs, and generates where it can.

    Laws:
        save then load is bit-exact; the CPU equals the GPU within tolerance; the forward pass
        compiles without graph breaks; every parameter gets a gradient.

    Attributes:
        spec: the resolved spec the model was composed from, and None if it was built by hand.
        providers: name, version, plugin and distribution of each component.
        component_paths: the path of each component in the spec, and its module names.
        tokenizer: for "source" and "target", a tokenizer of the `tokenizers` library as JSON.
    """

    kind: ClassVar[str] = "model"
    generation_input: ClassVar[str | None] = None
    """What generation answers: "source", or "prompt" to go on with; None if it can't."""

    spec: Mapping[str, Any] | None = None
    providers: tuple[Mapping[str, Any], ...] = ()
    component_paths: tuple[Mapping[str, Any], ...] = ()
    tokenizer: Mapping[str, str] | None = None

    @classmethod
    def from_pretrained(
        cls,
        source: str | os.PathLike[str],
        *,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
    ) -> Self:
        """Load a model with `zoo.load`, in evaluation mode, and check that it is of this class."""
        import zoo

        model = zoo.load(
            source,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            force_download=force_download,
        )
        if not isinstance(model, cls):
            raise ZooError(f"{source} holds a '{model.name}' model, no '{cls.name}'")
        return model

    def save_pretrained(self, directory: str | os.PathLike[str]) -> Path:
        """The model as a folder in the form it has on the Hub."""
        import zoo

        return zoo.save_folder(self, directory)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        revision: str | None = None,
        commit_message: str | None = None,
        token: str | bool | None = None,
    ) -> str:
        """``zoo.push``; the commit that now holds the model."""
        import zoo

        commit: str = zoo.push(
            self, repo_id, private=private, revision=revision, message=commit_message, token=token
        ).commit
        return commit

    @abstractmethod
    def forward(self, batch: Batch) -> Outputs:
        """The outputs for a batch, beside its targets."""

    @abstractmethod
    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, torch.Tensor]:
        """A random batch on the model's device, every item ``length`` long."""

    def get_embedding(self, side: str) -> Embedding:
        """The embedding of what is read ("source") or spoken ("target")."""
        raise ZooError(f"model '{self.name}' does not generate, so it has no {side} vocabulary")

    def vocab_size(self, side: str) -> int:
        """How many symbols there are to read ("source") or to speak ("target")."""
        return self.get_embedding(side).vocab or 0

    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        """The model ready to speak, having read the batch."""
        raise ZooError(f"model '{self.name}' does not generate")

    def generate(
        self,
        batch: Batch,
        sampler: Sampler,
        *,
        max_length: int,
        generator: torch.Generator | None = None,
        filters: Sequence[Filter] = (),
    ) -> GenerationOutput:
        """Continue each item of the batch until its end token, or max_length tokens."""
        import zoo

        return zoo.plugin.speak(
            self.prepare_generation(batch),
            sampler,
            max_length=max_length,
            generator=generator,
            filters=filters,
        )
