"""What skip-gram and CBOW share: two tables, of words and of words as they are predicted."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, ZooError
from zoo.plugin import Blueprint, Embedding


class WordModel(Model):
    """The words' vectors, and a second table of words as they are predicted."""

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        negatives: Annotated[int, Field(ge=0)] = 5,
    ) -> None:
        super().__init__()
        self.negatives = negatives
        self.source = source.build()
        if self.source.vocab is None:
            raise ZooError(f"embedding '{self.source.name}' has no vocabulary to learn vectors of")
        dim = self.source.dim
        self.output = nn.Embedding(self.source.vocab, dim)
        nn.init.uniform_(self.output.weight, -0.5 / dim, 0.5 / dim)  # small, but not zero

    def get_embedding(self, side: str) -> Embedding:
        return self.source


def get_table_weight(source: Embedding) -> nn.Parameter:
    """The one table an embedding consists of, if it is nothing but that."""
    weights = list(source.parameters())
    ids = torch.arange(source.vocab or 0, device=weights[0].device if weights else None)
    with torch.no_grad():
        plain = len(weights) == 1 and torch.equal(source(ids[None])[0], weights[0])
    if not plain:
        raise ZooError(
            f"embedding '{source.name}' is more than a table of vectors, so it cannot be learned "
            "in place; use a plain one, for example {type: token}"
        )
    return weights[0]


def candidates(truth: Tensor, batch: Batch, negatives: int) -> Tensor:
    """The true words [...] before the drawn ones [..., K]: [..., 1 + K]."""
    if "noise" not in batch:
        raise ZooError(
            f"a model with negatives: {negatives} needs as many drawn words under 'noise'"
        )
    noise = batch["noise"]
    if noise.shape != (*truth.shape, negatives):
        raise ZooError(
            f"'noise' is {list(noise.shape)}, should be {[*truth.shape, negatives]}: "
            f"{negatives} drawn words for each true one"
        )
    return torch.cat([truth[..., None], noise], dim=-1)
