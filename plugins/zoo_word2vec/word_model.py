"""`WordModel`: the base class of skip-gram and CBOW."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, ZooError
from zoo.plugin import Blueprint, Embedding, OutputSchema


class WordModel(Model):
    """Base class of skip-gram and CBOW: input vectors (`source`), output vectors (`output`).

    Args:
        source: embedding with the input vectors.
        negatives: number of noise words for each target; 0 computes the full softmax.
    """

    weight_roles: ClassVar[Mapping[str, str]] = {"source": "special", "output": "special"}

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
            raise ZooError(
                f"embedding '{self.source.name}' has no vocabulary; word vectors need one"
            )
        self.output = nn.Embedding(self.source.vocab, self.source.dim)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise all vectors from U(±0.5 / dim), as the authors' code does the input vectors.

        The initialisation of the embedding itself is replaced; rows of zeros (padding) stay zero.
        """
        bound = 0.5 / self.source.dim
        for weight in self.source.parameters():
            padding = (weight == 0).all(dim=-1, keepdim=True)
            weight.uniform_(-bound, bound).masked_fill_(padding, 0.0)
        self.output.weight.uniform_(-bound, bound)

    def output_table(self) -> Tensor:
        """Return all output vectors [V, D]."""
        ids = torch.arange(self.output.num_embeddings, device=self.output.weight.device)
        table: Tensor = self.output(ids)
        return table

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="candidate" if self.negatives else "token")

    def get_embedding(self, side: str) -> Embedding:
        """Return `source`; source and target share its vocabulary."""
        return self.source


def get_table_weight(source: Embedding) -> nn.Parameter:
    """Return the weight of an embedding that is a plain table; ZooError if it is not."""
    weights = list(source.parameters())
    ids = torch.arange(source.vocab or 0, device=weights[0].device if weights else None)
    with torch.no_grad():
        plain = len(weights) == 1 and torch.equal(source(ids[None])[0], weights[0])
    if not plain:
        raise ZooError(
            f"embedding '{source.name}' is not a single table with one row per word, which the "
            "training of word vectors requires; use for example {type: token}"
        )
    return weights[0]


def concat_noise(targets: Tensor, batch: Batch) -> Tensor:
    """Return targets [...] followed by noise words [..., K]: [..., 1 + K]."""
    return torch.cat([targets[..., None], batch["noise"]], dim=-1)
