"""Sentence encoder."""

from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Batch, Outputs
from zoo.plugin import BatchSchema, Blueprint, Embedding, Encoder, OutputSchema, TensorSchema
from zoo_language.encoder_model import EncoderModel


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
        pooling: mean of the states, the first state, or the maximum of each feature.
        normalise: `embed` returns vectors of length one.
        scale: factor of the cosine similarities (inverse temperature); not used with scores.
        scores: whether each pair has a score, usually from 0 to 1.

    Shapes:
        batch {source [B, S], target [B, T], the second texts, optional negative [B, N]} -> logits
        [B, 1, B], or [B, 1, 2B] with negatives; with scores, batch {source, target, score [B]} ->
        cosines [B, 1, 1]. The vectors [B, D] of both texts are in the extras. `embed`
        {source [B, S]} -> [B, D].
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
        scores: bool = False,
    ) -> None:
        super().__init__(source, encoder)
        self.pooling = pooling
        self.normalise = normalise
        self.scale = scale
        self.scores = scores

    def embed(self, batch: Batch) -> Tensor:
        """Return vectors [B, D] for a batch {source [B, S]}."""
        self.check_batch(batch, inference=True)
        pooled = self._pool(batch["source"])
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
        return F.normalize(self._pool(inputs), dim=-1)

    def _pool(self, inputs: Tensor) -> Tensor:
        memory = self.encode(inputs)
        if self.pooling == "first":
            return memory.states[:, 0]
        valid = memory.mask[..., None]
        if self.pooling == "max":
            return memory.states.masked_fill(~valid, float("-inf")).amax(dim=1)
        return memory.states.masked_fill(~valid, 0.0).sum(dim=1) / valid.sum(dim=1).clamp(1)
