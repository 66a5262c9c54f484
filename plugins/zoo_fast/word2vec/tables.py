"""Accelerations of the output vectors of word2vec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from zoo.acceleration import plain_class
from zoo.plugin import Acceleration, Blueprint, Call
from zoo_word2vec.cbow import Cbow
from zoo_word2vec.skip_gram import SkipGram


class OutputTable(Acceleration):
    """Reads all output vectors from the weight of their table, without a lookup of each."""

    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    traceable: ClassVar[bool] = True

    def why_not(self, target: Any, device: torch.device) -> str | None:
        is_table = plain_class(target.output) is nn.Embedding
        return None if is_table else "the output vectors are not a plain table"

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_tokens.token import Token

        device = torch.empty(0).device
        model = self.serves(source=Blueprint.of(Token, vocab=5, dim=3), negatives=0)
        yield Call(model.to(device, dtype), (), method="output_table")

    def output_table(self, target: Any) -> Tensor:
        weight: Tensor = target.output.weight
        return weight


class SkipGramTable(OutputTable):
    """The output vectors of skip-gram, without a lookup of each."""

    name: ClassVar[str] = "skip-gram-table"
    serves: ClassVar[type[SkipGram]] = SkipGram


class CbowTable(OutputTable):
    """The output vectors of cbow, without a lookup of each."""

    name: ClassVar[str] = "cbow-table"
    serves: ClassVar[type[Cbow]] = Cbow
