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
    TensorSchema,
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

    It is trained on pairs of texts with in-batch negatives, to which a third text of each pair, a
    hard negative, is added if the batch has one. With ``scores``, it is trained on pairs with a
    number instead, which cos(u, v) predicts (objective `mean-squared-error`).

    Paper: Reimers and Gurevych 2019, section 3 (pooling, regression of the cosine); Henderson et
    al. 2017, section 4 (in-batch negatives).

    Args:
        source: token embedding of both texts of a pair.
        encoder: encoder of the texts.
        pooling: mean of the states, the first or the last state of the text, or the maximum of
            each feature.
        normalise: `embed` returns vectors of length one.
        scale: factor of the cosine similarities (inverse temperature); not used with scores.
        scores: whether each pair has a score, usually from 0 to 1.
        projections: dense layers after the pooling, in order.

    Shapes:
        batch {source [B, S], target [B, T], the second texts, optional negative [B, N]} -> logits
        [B, 1, B], or [B, 1, 2B] with negatives; with scores, batch {source, target, score [B]} ->
        cosines [B, 1, 1]. The vectors [B, D] of both texts are in the extras. `embed`
        {source [B, S]} -> [B, D].
    """

    name: ClassVar[str] = "sentence-encoder"
    loss_only: ClassVar[tuple[str, ...]] = ("score",)
    paper: ClassVar[str] = "Reimers and Gurevych 2019, Sentence-BERT, arXiv:1908.10084"

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        pooling: Literal["mean", "first", "last", "max"] = "mean",
        normalise: bool = True,
        scale: Annotated[float, Field(gt=0)] = 20.0,
        scores: bool = False,
        projections: Sequence[Blueprint[VectorProjection]] = (),
    ) -> None:
        super().__init__(source, encoder)
        self.pooling = pooling
        self.normalise = normalise
        self.scale = scale
        self.scores = scores
        self.projections = nn.ModuleList()
        width = self.encoder.output_dim
        for projection in projections:
            built: VectorProjection = projection.build(input_dim=width)
            self.projections.append(built)
            width = built.output_dim

    def embed(self, batch: Batch) -> Tensor:
        """Return vectors [B, D] for a batch {source [B, S]}."""
        self.check_batch(batch, inference=True)
        pooled = self._vectors(batch["source"])
        return F.normalize(pooled, dim=-1) if self.normalise else pooled

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        source = self.source.input_schema()
        target = source.rename("S", "T")._replace(optional=inference)
        schema = {"source": source, "target": target}
        if self.scores:
            return {**schema, "score": TensorSchema(("B",), "float", optional=inference)}
        return {**schema, "negative": source.rename("S", "N")._replace(optional=True)}

    def output_schema(self) -> OutputSchema:
        vectors = ("source_vectors", "target_vectors")
        if self.scores:
            return OutputSchema("item", targets="value", extras=vectors)
        return OutputSchema("candidate", in_batch=True, extras=vectors)

    def forward(self, batch: Batch) -> Outputs:
        sources, targets = (self._unit_vectors(batch[side]) for side in ("source", "target"))
        vectors = {"source_vectors": sources, "target_vectors": targets}
        if self.scores:
            cosines, scores = (sources * targets).sum(dim=-1), batch["score"]  # [B]
            mask = torch.ones_like(scores[:, None], dtype=torch.bool)
            return Outputs(cosines[:, None, None], scores[:, None, None], mask, extras=vectors)
        if "negative" in batch:
            targets = torch.cat([targets, self._unit_vectors(batch["negative"])])  # [2B, D]
        logits = self.scale * sources @ targets.T
        labels = torch.arange(len(sources), device=sources.device)[:, None]
        mask = torch.ones_like(labels, dtype=torch.bool)
        return Outputs(logits[:, None], labels, mask, extras=vectors)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        example = super().example(batch, length, generator)
        if self.scores:
            device = generator.device if generator else example["source"].device
            scores = torch.rand(batch, generator=generator, device=device)
            example["score"] = scores.to(next(self.parameters()))
        return example

    def _unit_vectors(self, inputs: Tensor) -> Tensor:
        return F.normalize(self._vectors(inputs), dim=-1)

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
