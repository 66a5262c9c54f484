"""Sentence encoder."""

from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Batch, Outputs
from zoo.plugin import BatchSchema, Blueprint, Embedding, Encoder, OutputSchema
from zoo_language.encoder_model import EncoderModel


class SentenceEncoder(EncoderModel):
    r"""Sentence encoder: pools the states of an encoder into one vector per text.

    .. math::
        u = \mathrm{pool}(\mathrm{encode}(x)), \qquad
        p(j \mid i) = \mathrm{softmax}_j(\lambda \cos(u_i, v_j))

    It is trained on pairs of texts with in-batch negatives.

    Paper: Reimers and Gurevych 2019, section 3 (pooling); Henderson et al. 2017, section 4
    (in-batch negatives).

    Args:
        source: token embedding of both texts of a pair.
        encoder: encoder of the texts.
        pooling: mean of the states, the first state, or the maximum of each feature.
        normalise: `embed` returns vectors of length one.
        scale: factor of the cosine similarities (inverse temperature).

    Shapes:
        batch {source [B, S], target [B, T], the second texts} -> logits [B, 1, B];
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
        super().__init__(source, encoder)
        self.pooling = pooling
        self.normalise = normalise
        self.scale = scale

    def embed(self, batch: Batch) -> Tensor:
        """Return vectors [B, D] for a batch {source [B, S]}."""
        self.check_batch(batch, inference=True)
        pooled = self._pool(batch["source"])
        return F.normalize(pooled, dim=-1) if self.normalise else pooled

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        source = self.source.input_schema()
        target = source.rename("S", "T")._replace(optional=inference)
        return {"source": source, "target": target}

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="candidate", in_batch=True)

    def forward(self, batch: Batch) -> Outputs:
        sources, targets = (
            F.normalize(self._pool(batch[side]), dim=-1) for side in ("source", "target")
        )
        logits = self.scale * sources @ targets.T
        labels = torch.arange(len(sources), device=sources.device)[:, None]
        return Outputs(logits[:, None], labels, torch.ones_like(labels, dtype=torch.bool))

    def _pool(self, inputs: Tensor) -> Tensor:
        memory = self.encode(inputs)
        if self.pooling == "first":
            return memory.states[:, 0]
        valid = memory.mask[..., None]
        if self.pooling == "max":
            return memory.states.masked_fill(~valid, float("-inf")).amax(dim=1)
        return memory.states.masked_fill(~valid, 0.0).sum(dim=1) / valid.sum(dim=1).clamp(1)
