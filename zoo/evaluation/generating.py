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


class Decoder(Protocol):
    """Converts token IDs to text: a preprocessor or a tokenizer."""

    def decode(self, ids: Sequence[int]) -> str: ...


class Generation:
    """Generates with a model and a sampler, and decodes with the preprocessor of ``target``."""

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
        output = self.model.generate(
            inputs, self.sampler, max_length=self.max_length, filters=self.filters
        )
        return [generated_tokens(row, self.eos_ids, self.pad) for row in output.best()]

    def texts(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Return the texts of hypotheses."""
        return [self._decoder.decode(row) for row in tokens]

    @cached_property
    def _decoder(self) -> Decoder:
        preprocessor = build_preprocessors(self.model).get("target")
        if preprocessor is not None:
            return preprocessor
        text = (self.model.tokenizer or {}).get("target")
        if text is None:
            raise ZooError(
                f"model '{self.model.name}' has no tokenizer for its outputs, so it generates no "
                "text; add preprocessing.target to its spec, or a tokenizer with the option "
                "--tokenizer of zoo compose or zoo import"
            )
        return Tokenizer(text)


def build_generation(
    model: Model, sampler: Sampler | None, filters: Sequence[Filter], max_length: int
) -> Generation | None:
    """Return the generation of a model; None if it does not generate or has no sampler."""
    if model.generation_input is None or sampler is None:
        return None
    return Generation(model, sampler, filters, max_length)
