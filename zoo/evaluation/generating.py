"""Generation of the predictions of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

from torch import Tensor

from zoo.data.preprocessing import build_preprocessors
from zoo.data.tokenizer import Tokenizer
from zoo.errors import ZooError
from zoo.evaluation.predictions import generated_tokens
from zoo.interfaces import Filter, Model, Sampler
from zoo.interfaces.embedding import to_eos_ids


class TokenDecoder(Protocol):
    """Converts token IDs to text: a preprocessor or a tokenizer."""

    def decode(self, ids: Sequence[int]) -> str: ...


class Generation:
    """Generates tokens with a model and a sampler."""

    def __init__(
        self, model: Model, sampler: Sampler, filters: Sequence[Filter], max_length: int
    ) -> None:
        self.model = model
        self.sampler = sampler
        self.filters = filters
        self.max_length = max_length
        self.eos_ids = to_eos_ids(model.eos)
        target = (model.batch_schema() or {}).get("target")
        self.pad = 0 if target is None else int(target.pad)

    def tokens(self, batch: Mapping[str, Tensor]) -> list[list[int]]:
        """Return the best hypothesis of each item, without end token and padding."""
        inputs = {key: tensor for key, tensor in batch.items() if key != "target"}
        if self.model.generation_input == "prompt" and "mask" in inputs:
            del inputs["mask"]  # of the targets
            if len(batch["prompt"]) > 1:
                raise ZooError(
                    f"model '{self.model.name}' has no padding token, so prompts of different "
                    "lengths cannot be in one batch; set the batch size to 1 (--batch 1)"
                )
        output = self.model.generate(
            inputs, self.sampler, max_length=self.max_length, filters=self.filters
        )
        return [generated_tokens(row, self.eos_ids, self.pad) for row in output.best()]


def build_generation(
    model: Model, sampler: Sampler | None, filters: Sequence[Filter], max_length: int
) -> Generation | None:
    """Return the generation of a model; None if it does not generate or has no sampler."""
    if model.generation_input is None or sampler is None:
        return None
    return Generation(model, sampler, filters, max_length)


class TextDecoder:
    """Converts predictions to texts, with the preprocessor of ``target`` or the tokenizer.

    They are built at the first use.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def texts(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Return the texts of token IDs."""
        if self._decoder is None:
            raise ZooError(
                f"model '{self.model.name}' has no tokenizer for its outputs, so it generates no "
                "text; add preprocessing.target to its spec, or a tokenizer with the option "
                "--tokenizer of zoo compose or zoo import"
            )
        return [self._decoder.decode(row) for row in tokens]

    def class_names(self, classes: Sequence[Sequence[int]]) -> list[str]:
        """Return the names of class IDs, separated by spaces; the IDs if there are no names."""
        return [" ".join(row) for row in self.name_rows(classes)]

    def name_rows(self, classes: Sequence[Sequence[int]]) -> list[list[str]]:
        """Return the names of class IDs; the IDs if there are no names."""
        return [[self.class_name(each) for each in row] for row in classes]

    def class_name(self, each: int) -> str:
        """Return the name of a class ID; the ID if there are no names."""
        return str(each) if self._decoder is None else self._decoder.decode([each])

    @cached_property
    def _decoder(self) -> TokenDecoder | None:
        preprocessor = build_preprocessors(self.model).get("target")
        text = (self.model.tokenizer or {}).get("target")
        return preprocessor or (None if text is None else Tokenizer(text))
