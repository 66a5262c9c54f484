"""Sentence encoder."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Outputs
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Embedding,
    Encoder,
    FromParent,
    Linear,
    Memory,
    OutputSchema,
)
from zoo_language.encoder_model import EncoderModel


class VectorProjection(nn.Module):
    r"""Dense layer of a pooled vector.

    .. math:: u' = f(W u + b)

    Args:
        input_dim: width of the vector.
        dim: width of the result.
        activation: f; "none" for the identity.
        bias: whether the layer has a bias.

    Shapes:
        [B, input_dim] -> [B, dim].
    """

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        dim: Annotated[int, Field(ge=1)],
        activation: Literal["tanh", "none"] = "tanh",
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.input_dim, self.output_dim, self.activation = input_dim, dim, activation
        self.map = Linear(input_dim, dim, bias=bias)

    def forward(self, vector: Tensor) -> Tensor:
        mapped: Tensor = self.map(vector)
        return torch.tanh(mapped) if self.activation == "tanh" else mapped


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
        pooling: mean of the states, the first or the last state of the text, or the maximum of
            each feature.
        normalise: `embed` returns vectors of length one.
        scale: factor of the cosine similarities (inverse temperature).
        projections: dense layers after the pooling, in order.

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
        pooling: Literal["mean", "first", "last", "max"] = "mean",
        normalise: bool = True,
        scale: Annotated[float, Field(gt=0)] = 20.0,
        projections: Sequence[Blueprint[VectorProjection]] = (),
    ) -> None:
        super().__init__(source, encoder)
        self.pooling = pooling
        self.normalise = normalise
        self.scale = scale
        self.projections = nn.ModuleList()
        width = self.encoder.output_dim
        for projection in projections:
            self.projections.append(projection.build(input_dim=width))
            width = self.projections[-1].output_dim

    def embed(self, batch: Batch) -> Tensor:
        """Return vectors [B, D] for a batch {source [B, S]}."""
        self.check_batch(batch, inference=True)
        pooled = self._vectors(batch["source"])
        return F.normalize(pooled, dim=-1) if self.normalise else pooled

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        source = self.source.input_schema()
        target = source.rename("S", "T")._replace(optional=inference)
        return {"source": source, "target": target}

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="candidate", in_batch=True)

    def forward(self, batch: Batch) -> Outputs:
        sources, targets = (
            F.normalize(self._vectors(batch[side]), dim=-1) for side in ("source", "target")
        )
        logits = self.scale * sources @ targets.T
        labels = torch.arange(len(sources), device=sources.device)[:, None]
        return Outputs(logits[:, None], labels, torch.ones_like(labels, dtype=torch.bool))

    def _vectors(self, inputs: Tensor) -> Tensor:
        """Return the vectors [B, D] of texts [B, S], before normalisation."""
        vectors = self._pool(self.encode(inputs))
        for projection in self.projections:
            vectors = projection(vectors)
        return vectors

    def _pool(self, memory: Memory) -> Tensor:
        if self.pooling == "first":
            return memory.states[:, 0]
        if self.pooling == "last":
            last = (memory.mask.sum(dim=1) - 1).clamp(min=0)
            return memory.states[torch.arange(len(last), device=last.device), last]
        valid = memory.mask[..., None]
        if self.pooling == "max":
            return memory.states.masked_fill(~valid, float("-inf")).amax(dim=1)
        return memory.states.masked_fill(~valid, 0.0).sum(dim=1) / valid.sum(dim=1).clamp(1)
