"""Sentence encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    InvalidParameter,
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


@dataclass(frozen=True)
class EmbeddingOptions:
    """What `SentenceEncoder.embed` returns; the model documents it."""

    prompts: Mapping[str, str] | None = None
    default_prompt: str | None = None
    include_prompt: bool = True
    truncate_dim: Annotated[int, Field(ge=1)] | None = None

    def __post_init__(self) -> None:
        if self.default_prompt is not None and self.default_prompt not in (self.prompts or ()):
            names = ", ".join(self.prompts or ()) or "none"
            message = f"'{self.default_prompt}' is not the name of a prompt (prompts: {names})"
            raise InvalidParameter("default_prompt", message)


DEFAULT_OPTIONS = EmbeddingOptions()


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
        prompts: texts by name that `zoo.embed` inserts before its inputs.
        default_prompt: name of the prompt that `zoo.embed` uses if none is given.
        include_prompt: whether the states of a prompt are pooled.
        truncate_dim: number of features of the vectors that `embed` returns, the first ones, after
            the normalisation (Kusupati et al. 2022); all if not set.

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
        options: EmbeddingOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(source, encoder)
        self.pooling = pooling
        self.normalise = normalise
        self.scale = scale
        self.scores = scores
        self.prompts, self.default_prompt = dict(options.prompts or {}), options.default_prompt
        self.include_prompt, self.truncate_dim = options.include_prompt, options.truncate_dim
        self.projections = nn.ModuleList()
        width = self.encoder.output_dim
        for projection in projections:
            built: VectorProjection = projection.build(input_dim=width)
            self.projections.append(built)
            width = built.output_dim

    def embed(
        self, batch: Batch, *, prompt_length: int = 0, truncate_dim: int | None = None
    ) -> Tensor:
        """Return vectors [B, D] for a batch {source [B, S]}.

        Args:
            prompt_length: number of tokens of the prompt that the texts begin with, which are not
                pooled if `include_prompt` is false.
            truncate_dim: replaces that of the model.
        """
        self.check_batch(batch, inference=True)
        pooled = self._vectors(batch["source"], 0 if self.include_prompt else prompt_length)
        vectors = F.normalize(pooled, dim=-1) if self.normalise else pooled
        return vectors[:, : truncate_dim or self.truncate_dim]

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
        negatives = (
            {"negative": self._unit_vectors(batch["negative"])} if "negative" in batch else {}
        )
        whole = self.whole_batch({**vectors, **negatives})
        sources, targets = whole["source_vectors"], whole["target_vectors"]
        vectors = {"source_vectors": sources, "target_vectors": targets}
        if "negative" in whole:
            targets = torch.cat([targets, whole["negative"]])  # [2B, D]
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

    def _vectors(self, inputs: Tensor, skip: int = 0) -> Tensor:
        """Return the vectors [B, D] of texts [B, S], before normalisation.

        Args:
            skip: number of tokens at the start that are not pooled.
        """
        vectors = self._pool(self.encode(inputs), skip)
        for projection in self.projections:
            vectors = projection(vectors)
        return vectors

    def _pool(self, memory: Memory, skip: int) -> Tensor:
        if self.pooling == "first":
            return memory.states[:, skip if skip < memory.states.shape[1] else 0]
        if self.pooling == "last":
            last = (memory.mask.sum(dim=1) - 1).clamp(min=0)
            return memory.states[torch.arange(len(last), device=last.device), last]
        valid = memory.mask[..., None]
        if skip:
            positions = torch.arange(valid.shape[1], device=valid.device)
            valid = valid & (positions >= skip)[:, None]
        if self.pooling == "max":
            return memory.states.masked_fill(~valid, float("-inf")).amax(dim=1)
        return memory.states.masked_fill(~valid, 0.0).sum(dim=1) / valid.sum(dim=1).clamp(1)
