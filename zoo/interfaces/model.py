"""Interface of models."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces.batch_schema import BatchSchema, add_zeros, check_batch
from zoo.interfaces.component import Component, Entry
from zoo.interfaces.contracts import OutputSchema
from zoo.interfaces.data import Batch, GenerationOutput, Memory, Outputs
from zoo.interfaces.decoder import Decoder
from zoo.interfaces.embedding import Embedding, to_eos_ids
from zoo.interfaces.evaluation_mode import set_frozen_to_evaluation
from zoo.interfaces.filter import Filter
from zoo.interfaces.sampler import Sampler

Vectors = Mapping[str, Tensor]


@dataclass(frozen=True)
class GenerationInputs:
    """Inputs of the decoding loop, after the source is encoded.

    Shapes:
        prompt [B, P]: tokens to continue, starting with bos, right-padded; only bos if None;
        lengths [B]: length of each prompt; derived from the padding if None.

    Attributes:
        generates_padding: whether the padding token can be generated, as any other token.
    """

    decoder: Decoder
    memory: Memory
    bos: int
    eos: int | Sequence[int]
    pad: int
    prompt: torch.Tensor | None = None
    lengths: torch.Tensor | None = None
    generates_padding: bool = False

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return to_eos_ids(self.eos)


class Model(Component, nn.Module, ABC):
    """Computes outputs for a batch and, if it supports generation, generates tokens.

    A model that generates implements `prepare_generation` (or `generate`) for the batch key in
    `generation_input`, `get_embedding`, and sets `eos` (and `bos`, if prompts start with a token),
    so that `zoo.generate` and ``zoo generate`` can build the batch and cut the outputs.

    Laws:
        saving and loading is bit-exact; state that changes in training is in parameters and
        persistent buffers, so that checkpoints contain it; CPU and GPU agree within tolerance; the
        forward pass compiles without graph breaks; every parameter gets a gradient; `zoo.generate`
        returns the tokens of `generate`; the outputs contain what `output_schema` declares; a batch
        that does not fit `batch_schema` raises ZooError; in evaluation mode the model is called
        without the keys that do not change its outputs; padding does not change the outputs;
        `observe_validation` returns whether it changes the outputs.

    Attributes:
        bos: the start token, which `zoo.generate` adds to prompts; None if there is none.
        eos: the end tokens, one or several.
        spec: the resolved spec, or None if the model was not composed from one.
        providers: version, plugin and distribution of each component.
        component_paths: for each component, its path in the spec and its module names in the model.
        component_entries: the registered classes of these components.
        tokenizer: for "source" and "target", a tokenizer of the `tokenizers` library as JSON; for
            "chat", the chat template.
        base: path or name of the saved model whose weights it started from, if it is known;
            adapters are saved without its weights.
    """

    kind: ClassVar[str] = "model"
    generation_input: ClassVar[str | None] = None
    complete_batch: Callable[[Vectors], Vectors] | None = None
    """Returns the vectors of a whole batch, given those of a part of it; see `whole_batch`."""
    """The batch key of the input of generation, "source" or "prompt"; None if generation is not
    supported."""

    loss_only: ClassVar[tuple[str, ...]] = ()
    """Keys of the batch that only the loss uses, such as the class of an item: in evaluation mode a
    model can be called without them."""

    bos: int | None = None
    eos: int | Sequence[int] = ()

    spec: Mapping[str, Any] | None = None
    providers: tuple[Mapping[str, Any], ...] = ()
    component_paths: tuple[Mapping[str, Any], ...] = ()
    component_entries: tuple[Entry, ...] = ()
    tokenizer: Mapping[str, str] | None = None
    base: str | None = None

    def _load_from_state_dict(
        self,
        state_dict: dict[str, torch.Tensor],
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Add the further names of shared tensors, which saved models contain once."""
        own = self.state_dict(prefix=prefix, keep_vars=True)
        found = {id(own[name]): tensor for name, tensor in state_dict.items() if name in own}
        for name, tensor in own.items():
            if id(tensor) in found:
                state_dict.setdefault(name, found[id(tensor)])
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

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
            raise ZooError(f"{source} contains a '{model.name}' model, not a '{cls.name}' model")
        return model

    def save_pretrained(self, directory: str | os.PathLike[str]) -> Path:
        """Save the model as a folder in the layout used on the Hub."""
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
        """Upload the model with ``zoo.push`` and return the commit."""
        import zoo

        commit: str = zoo.push(
            self, repo_id, private=private, revision=revision, message=commit_message, token=token
        ).commit
        return commit

    def __call__(self, batch: Batch) -> Any:
        """Check the batch against `batch_schema` and compute the outputs.

        In evaluation mode a batch without the keys of `loss_only` gives outputs without targets.
        """
        if not torch.compiler.is_compiling():
            self.check_batch(batch)
        if self.training or all(key in batch for key in self.loss_only):
            return super().__call__(batch)
        schema = self.batch_schema() or {}
        missing = [key for key in self.loss_only if key in schema and key not in batch]
        if not missing:
            return super().__call__(batch)
        return super().__call__(add_zeros(schema, batch, missing)).without_targets()

    def check_batch(self, batch: Batch, *, inference: bool = False) -> None:
        """Raise ZooError if the batch does not fit `batch_schema`.

        It reads shapes and dtypes, and on the CPU also whether IDs are in range.
        """
        schema = self.batch_schema(inference=inference)
        if schema is None:
            return
        if self.loss_only and not self.training:
            schema = {
                key: field._replace(optional=field.optional or key in self.loss_only)
                for key, field in schema.items()
            }
        check_batch(schema, batch, f"model '{self.name}'", self._missing_hint)

    def _missing_hint(self, key: str) -> str:
        """Return what to do without a key of the batch that has targets."""
        inputs = self.batch_schema(inference=True) or {}
        if key not in inputs or not inputs[key].optional:
            return ""
        if key in self.loss_only:
            return "; the loss needs it: call the model in evaluation mode for outputs only"
        if self.generation_input is not None:
            return (
                "; the model computes its outputs from it (teacher forcing); without it, use "
                "zoo.generate or model.generate"
            )
        return "; use zoo.embed for the vectors of one input" if hasattr(self, "embed") else ""

    def whole_batch(self, vectors: Vectors) -> Vectors:
        """Return the vectors of all examples of a batch, of which a forward pass may have a part.

        A model with in-batch negatives (`OutputSchema.in_batch`) computes the vectors of each
        example alone, calls this method, and computes its outputs from what it returns. That is the
        input, unless a batch is divided over processes or accumulation steps: training then sets
        `complete_batch`, so that the outputs and the loss are those of the whole batch.

        Args:
            vectors: tensors [B, ...] by name.

        Returns:
            Tensors [N, ...] with the same names, or more, N >= B.
        """
        return vectors if self.complete_batch is None else self.complete_batch(vectors)

    def batch_schema(self, *, inference: bool = False) -> BatchSchema | None:
        """Return the tensors of a batch; None if they are not declared, so that nothing is checked.

        Args:
            inference: whether the batch is for generation or embedding, so targets are optional.
        """
        return None

    @abstractmethod
    def forward(self, batch: Batch) -> Outputs:
        """Compute the outputs for a batch."""

    @abstractmethod
    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, torch.Tensor]:
        """Return a random batch on the model's device, with items of length ``length``."""

    def output_schema(self) -> OutputSchema | None:
        """Return what the outputs contain; by default None: not declared, so not checked."""
        return None

    def align_frames(self, outputs: Outputs) -> torch.Tensor | None:
        """Return the class of each frame [B, T] on the most probable path of the targets, for a
        head with frames; by default None: there is no path."""
        return None

    def observe_validation(self, *, is_best: bool) -> bool:
        """Called by ``zoo.train`` after each evaluation, for models that change while they train.

        The checkpoint of the evaluation is saved before, so it has the model that was evaluated.

        Args:
            is_best: whether the monitored result is the best so far.

        Returns:
            Whether the model has changed, so that a new phase of the training begins: later
            evaluations are not compared with earlier ones.
        """
        return False

    def train(self, mode: bool = True) -> Self:
        """Set training mode; parts whose parameters are all frozen stay in evaluation mode.

        Their dropout is off, and their batch norms keep their statistics. The mode of a model
        without trained parameters is set as a whole.
        """
        super().train(mode)
        if mode:
            set_frozen_to_evaluation(self)
        return self

    def get_embedding(self, side: str) -> Embedding:
        """Return the embedding of the "source" or the "target"."""
        raise ZooError(
            f"model '{self.name}' does not define get_embedding, so it has no {side} vocabulary"
        )

    def vocab_size(self, side: str) -> int:
        """Return the vocabulary size of the "source" or the "target"."""
        return self.get_embedding(side).vocab or 0

    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        """Encode the batch and return the inputs of the decoding loop."""
        raise ZooError(f"model '{self.name}' does not support generation")

    @torch.no_grad()
    def generate(
        self,
        batch: Batch,
        sampler: Sampler,
        *,
        max_length: int,
        generator: torch.Generator | None = None,
        filters: Sequence[Filter] = (),
    ) -> GenerationOutput:
        """Generate tokens for each item of the batch until eos or max_length tokens."""
        import zoo

        self.check_batch(batch, inference=True)
        request = zoo.plugin.DecodeRequest(
            sampler=sampler, max_length=max_length, generator=generator, filters=filters
        )
        return zoo.plugin.decode(self.prepare_generation(batch), request)
