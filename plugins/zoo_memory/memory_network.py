"""End-to-end memory network."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import (
    Attention,
    BatchSchema,
    Blueprint,
    Embedding,
    Mask,
    OutputSchema,
    WidthConflict,
    forbid_stochastic,
    rename_params,
)
from zoo_memory.linear_start import LinearStart
from zoo_memory.story import (
    answer_outputs,
    random_story,
    require_vocab,
    story_schema,
    validate_story,
)


class MemoryNetwork(Model):
    r"""End-to-end memory network: predicts an answer from several hops of attention over facts.

    .. math::
        p_i = \mathrm{softmax}(u^\top m_i), \quad o = \sum_i p_i c_i, \quad
        u \leftarrow u + o, \quad \hat a = \mathrm{softmax}(W (o + u))

    where the keys are m_i = Σ_j l_j ⊙ A x_ij + T_A(i), and the values c_i likewise with C and T_C.

    Paper: Sukhbaatar et al. 2015, sections 2 and 4.1. With linear_start, the softmax of the hops is
    left out (p_i = uᵀ m_i) until a validation is not the best, or for a number of validations:
    `zoo.train` calls `observe_validation`, other training loops call `end_linear_start`
    (section 4.2; the paper's initial learning rate is then 0.005). Random noise is that of section
    4.2: in training, the temporal encoding counts empty memories that are inserted at random.

    Args:
        source: word embedding; hops + 1 copies if tying is 'adjacent', else 2.
        attention: attention over the facts; dot product and softmax in the paper.
        hops: number of hops.
        memory_size: maximum number of facts, the size of the temporal encoding T.
        tying: 'adjacent' uses the value embedding of a hop as the key embedding of the next, and
            the last one as output; 'layerwise' shares the embeddings of all hops and adds a linear
            layer between hops.
        position_encoding: weight words by their position in the sentence (l_j); a bag of words if
            False.
        position_scale: factor of l_j; with 2 its mean is about 1, as in the authors' code.
        linear_start: start training without the softmax of the hops, until a validation is not the
            best, or for this number of validations. The phase is part of the weights: a saved model
            continues in the phase in which it was saved.
        noise: probability of an empty memory after each fact, in training; 0.1 in the paper.
        empty_memories: fill the story up to memory_size with empty memories, m_i = c_i = 0, which
            take part in the softmax (section 4.2). A hop can then attend to nothing, which
            questions with the answers yes and no need.

    Shapes:
        batch {story [B, S, W], question [B, Q], both padded, target [B]} -> logits [B, 1, vocab].
    """

    name: ClassVar[str] = "memory-network"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
    version: ClassVar[int] = 2
    paper: ClassVar[str] = "Sukhbaatar et al. 2015, End-To-End Memory Networks, arXiv:1503.08895"
    weight_roles: ClassVar[Mapping[str, str]] = {"times": "embedding"}

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        attention: Blueprint[Attention],
        hops: Annotated[int, Field(ge=1, le=64)] = 3,
        memory_size: Annotated[int, Field(ge=1)] = 50,
        tying: Literal["adjacent", "layerwise"] = "adjacent",
        position_encoding: bool = True,
        position_scale: Annotated[float, Field(gt=0)] = 1.0,
        linear_start: bool | Annotated[int, Field(ge=1)] = False,
        noise: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        empty_memories: bool = False,
    ) -> None:
        super().__init__()
        self.noise, self.empty_memories = noise, empty_memories
        self.hops, self.memory_size, self.tying = hops, memory_size, tying
        self.position_encoding, self.position_scale = position_encoding, position_scale
        adjacent = tying == "adjacent"
        self.embeddings = nn.ModuleList(source.build() for _ in range(hops + 1 if adjacent else 2))
        self.source: Embedding = self.embeddings[0]  # type: ignore[assignment]
        width = self.source.dim
        self.times = nn.ParameterList(
            nn.Parameter(torch.empty(memory_size, width)) for _ in self.embeddings
        )
        self.reset_parameters()
        self.linear_start = linear_start
        self.attention = attention.build(query_dim=width, key_dim=width)
        forbid_stochastic(self.attention, "the hops")
        if linear_start:
            validations = None if linear_start is True else linear_start
            self.attention.align = LinearStart(self.attention.align, validations)
        if self.attention.output_dim != width:
            raise WidthConflict(
                "the output of the attention is added to the question, so both need the same width",
                output_dim=self.attention.output_dim,
                dim=width,
            )
        vocab = require_vocab(self.source)
        self.map = None if adjacent else nn.Linear(width, width, bias=False)
        self.out = None if adjacent else nn.Linear(width, vocab, bias=False)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for temporal in self.times:
            temporal.normal_().mul_(0.1)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, memories="memory_size", ordered="position_encoding")
        return params, tensors

    @property
    def is_linear(self) -> bool:
        """Whether the softmax of the hops is left out."""
        align = self.attention.align
        return isinstance(align, LinearStart) and bool(align.linear)

    def end_linear_start(self) -> None:
        """Insert the softmax of the hops; it has no effect if they already have one."""
        align = self.attention.align
        if isinstance(align, LinearStart):
            align.linear.fill_(False)

    def observe_validation(self, *, is_best: bool) -> bool:
        """Insert the softmax of the hops when the linear start has ended."""
        align = self.attention.align
        return isinstance(align, LinearStart) and align.observe_validation(is_best=is_best)

    def forward(self, batch: Batch) -> Outputs:
        story, question = validate_story(batch)
        if story.shape[1] > self.memory_size:
            raise ZooError(
                f"the story has {story.shape[1]} facts, but memory_size is {self.memory_size}; "
                "increase memory_size or pass fewer facts"
            )
        fact_mask = self.source.mask(story.flatten(0, 1)).view(story.shape).any(dim=-1)  # [B, S]
        ages, mask = self._ages(fact_mask), Mask(keys=fact_mask)
        facts = [
            self._facts(story, fact_mask, ages, index) for index in range(len(self.embeddings))
        ]
        if self.empty_memories:
            empty, mask = self.memory_size - story.shape[1], Mask()
            facts = [F.pad(vectors, (0, 0, 0, empty)) for vectors in facts]
        u = self._sentences(question[:, None], 0)  # [B, 1, D]
        for hop in range(self.hops):
            index = hop if self.map is None else 0
            prepared = self.attention.prepare(facts[index])
            prepared |= {"values": self.attention.prepare(facts[index + 1])["values"]}
            attended = self.attention(u, prepared, mask).context
            u = attended + (u if self.map is None else self.map(u))
        last: Embedding = self.embeddings[-1]  # type: ignore[assignment]
        logits = last.unembed(u[:, 0]) if self.out is None else self.out(u[:, 0])
        return answer_outputs(logits, batch)

    def _ages(self, fact_mask: Tensor) -> Tensor:
        """Return the number of memories after each fact [B, S]; 0 for the last one."""
        memories = fact_mask.long()
        if self.training and self.noise:
            empty = torch.rand(fact_mask.shape, device=fact_mask.device) < self.noise
            memories = memories + (fact_mask & empty)
        ages = memories.sum(dim=1, keepdim=True) - memories.cumsum(dim=1)
        return ages.clamp(min=0, max=self.memory_size - 1)

    def _facts(self, story: Tensor, fact_mask: Tensor, ages: Tensor, index: int) -> Tensor:
        """Return the vectors [B, S, D] of the facts, with their temporal encoding."""
        temporal = self.times[index][ages]
        facts: Tensor = (self._sentences(story, index) + temporal) * fact_mask[..., None]
        return facts

    def _sentences(self, story: Tensor, index: int) -> Tensor:
        """Return one vector [B, S, D] per sentence of the story [B, S, W]."""
        B, S, W = story.shape
        words = story.reshape(B * S, W)
        embedding: Embedding = self.embeddings[index]  # type: ignore[assignment]
        vectors, mask = embedding(words), embedding.mask(words)
        weights = mask[..., None].to(vectors)
        if self.position_encoding:
            weights = weights * position_weights(mask, vectors) * self.position_scale
        sums: Tensor = (vectors * weights).sum(dim=1)
        return sums.view(B, S, -1)

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        return story_schema(self.source, inference=inference)

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="item")

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return random_story(self.source, batch, min(length, self.memory_size), generator)


def position_weights(mask: Tensor, vectors: Tensor) -> Tensor:
    """Return l_kj = (1 - j/J) - (k/d)(1 - 2j/J) for mask [N, W].

    J is the number of valid words in each row. The result has the shape [N, W, d], dtype and device
    of the vectors.
    """
    W, d = vectors.shape[1:]
    lengths = mask.sum(dim=1).clamp(min=1)[:, None, None]
    j = torch.arange(1, W + 1, device=vectors.device)[None, :, None] / lengths
    k = torch.arange(1, d + 1, device=vectors.device) / d
    weights: Tensor = (1 - j) - k * (1 - 2 * j)
    return weights.to(vectors)
