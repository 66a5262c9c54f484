"""Sentence encoder: one vector for a whole text."""

from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Batch, Model, Outputs
from zoo.plugin import Blueprint, Embedding, Encoder, forbid_stochastic


class SentenceEncoder(Model):
    r"""Gives a text one vector, near that of a text which belongs to it and far from others'.

    .. math::
        u = \mathrm{pool}(\mathrm{encode}(x)), \qquad
        p(j \mid i) = \mathrm{softmax}_j(\lambda \cos(u_i, v_j))

    It learns from pairs: each text has to find its partner among those of the whole batch.

    Paper: Reimers and Gurevych 2019, section 3 (pooling); Henderson et al. 2017, section 4 (the
    other pairs of a batch as negatives).

    Args:
        source: embedding of the texts, both of a pair.
        encoder: reads them.
        pooling: one vector from many: their mean, the first, or the largest of each feature.
        normalise: `embed` gives vectors of length one.
        scale: multiplies the cosines, the inverse of a temperature.

    Shapes:
        batch {source [B, S], target [B, T], the partner of each} -> logits [B, 1, B];
        `embed` {source [B, S]} -> [B, D].
    """

    name: ClassVar[str] = "sentence-encoder"
    paper: ClassVar[str] = "Reimers and Gurevych 2019, Sentence-BERT, arXiv:1908.10084"

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        pooling: Literal["mean", "first", "max"] = "mean",
        normalise: bool = True,
        scale: Annotated[float, Field(gt=0)] = 20.0,
    ) -> None:
        super().__init__()
        self.pooling = pooling
        self.normalise = normalise
        self.scale = scale
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")

    def embed(self, batch: Batch) -> Tensor:
        """{source [B, S]} -> vectors [B, D]."""
        pooled = self._pool(batch["source"])
        return F.normalize(pooled, dim=-1) if self.normalise else pooled

    def forward(self, batch: Batch) -> Outputs:
        texts, partners = (
            F.normalize(self._pool(batch[side]), dim=-1) for side in ("source", "target")
        )
        logits = self.scale * texts @ partners.T
        targets = torch.arange(len(texts), device=texts.device)[:, None]
        return Outputs(logits[:, None], targets, torch.ones_like(targets, dtype=torch.bool))

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {
            "source": self.source.example(batch, length, generator),
            "target": self.source.example(batch, length, generator),
        }

    def get_embedding(self, side: str) -> Embedding:
        return self.source

    def _pool(self, inputs: Tensor) -> Tensor:
        memory = self.encoder(self.source(inputs), self.source.mask(inputs))
        if self.pooling == "first":
            first: Tensor = memory.states[:, 0]
            return first
        real = memory.mask[..., None]
        if self.pooling == "max":
            largest: Tensor = memory.states.masked_fill(~real, float("-inf")).amax(dim=1)
            return largest
        mean: Tensor = memory.states.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(1)
        return mean
