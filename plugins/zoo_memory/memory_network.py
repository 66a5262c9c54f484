"""End-to-end memory network."""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import Attention, Blueprint, Embedding, Mask, WidthConflict
from zoo_memory import story as story_batch


class MemoryNetwork(Model):
    r"""Answers a question by looking at facts several times, each time with what it has learned.

    .. math::
        p_i = \mathrm{softmax}(u^\top m_i), \quad o = \sum_i p_i c_i, \quad
        u \leftarrow u + o, \quad \hat a = \mathrm{softmax}(W (o + u))

    where facts become m_i = Σ_j l_j ⊙ A x_ij + T_A(i), read as keys, and c_i likewise by C and
    T_C, read as values.

    Paper: Sukhbaatar et al. 2015, sections 2 and 4.1.

    Args:
        source: embedding of words; built for each hop.
        attention: how facts are looked at; the paper's is a dot product and a softmax.
        hops: how often.
        memories: how many facts there can be, for the vectors that say how long ago one was told.
        tying: 'adjacent' lets a hop's values be the next one's keys, and the last ones the output;
            'layerwise' uses the same at each hop, with a map of the question between them.
        ordered: weigh words by their place in the sentence (the l_j); a bag of words if not.

    Shapes:
        batch {story [B, S, W], question [B, Q], both padded, target [B]} -> logits [B, 1, vocab].
    """

    name: ClassVar[str] = "memory-network"
    paper: ClassVar[str] = "Sukhbaatar et al. 2015, End-To-End Memory Networks, arXiv:1503.08895"

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        attention: Blueprint[Attention],
        hops: Annotated[int, Field(ge=1, le=64)] = 3,
        memories: Annotated[int, Field(ge=1)] = 50,
        tying: Literal["adjacent", "layerwise"] = "adjacent",
        ordered: bool = True,
    ) -> None:
        super().__init__()
        self.hops, self.memories, self.ordered = hops, memories, ordered
        several = tying == "adjacent"
        self.embeddings = nn.ModuleList(source.build() for _ in range(hops + 1 if several else 2))
        self.source: Embedding = self.embeddings[0]  # type: ignore[assignment]
        width = self.source.dim
        self.times = nn.ParameterList(
            nn.Parameter(torch.randn(memories, width) * 0.1) for _ in self.embeddings
        )
        self.attention = attention.build(query_dim=width, key_dim=width)
        if self.attention.output_dim != width:
            raise WidthConflict(
                "what is seen is added to the question, so they must be as wide",
                output_dim=self.attention.output_dim,
                dim=width,
            )
        vocab = story_batch.require_vocab(self.source)
        self.map = None if several else nn.Linear(width, width, bias=False)
        self.out = None if several else nn.Linear(width, vocab, bias=False)

    def forward(self, batch: Batch) -> Outputs:
        story, question = story_batch.validate_story(batch)
        if story.shape[1] > self.memories:
            raise ZooError(
                f"a story of {story.shape[1]} facts is longer than memories ({self.memories})"
            )
        fact_mask = self.source.mask(story.flatten(0, 1)).view(story.shape).any(dim=-1)  # [B, S]
        rows = [self._facts(story, fact_mask, row) for row in range(len(self.embeddings))]
        u = self._sentences(question[:, None], 0)  # [B, 1, D]
        for hop in range(self.hops):
            at = hop if self.map is None else 0
            prepared = self.attention.prepare(rows[at])
            prepared |= {"values": self.attention.prepare(rows[at + 1])["values"]}
            seen = self.attention(u, prepared, Mask(keys=fact_mask))
            u = seen + (u if self.map is None else self.map(u))
        last: Embedding = self.embeddings[-1]  # type: ignore[assignment]
        logits = last.unembed(u[:, 0]) if self.out is None else self.out(u[:, 0])
        return story_batch.answer_outputs(logits, batch)

    def _facts(self, story: Tensor, fact_mask: Tensor, row: int) -> Tensor:
        """What is kept of each fact, and how long ago it was told: [B, S, D]."""
        ago = fact_mask.sum(dim=1, keepdim=True) - fact_mask.cumsum(dim=1)
        temporal = self.times[row][ago.clamp(min=0)]
        facts: Tensor = (self._sentences(story, row) + temporal) * fact_mask[..., None]
        return facts

    def _sentences(self, story: Tensor, row: int) -> Tensor:
        """[B, S, W] -> one vector a sentence [B, S, D]."""
        B, S, W = story.shape
        words = story.reshape(B * S, W)
        embedding: Embedding = self.embeddings[row]  # type: ignore[assignment]
        vectors, real = embedding(words), embedding.mask(words)
        weights = real[..., None].to(vectors)
        if self.ordered:
            weights = weights * position_encoding(real, vectors)
        sums: Tensor = (vectors * weights).sum(dim=1)
        return sums.view(B, S, -1)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return story_batch.example(self.source, batch, min(length, self.memories), generator)


def position_encoding(real: Tensor, like: Tensor) -> Tensor:
    """l_kj = (1 - j/J) - (k/d)(1 - 2j/J), for J real words of [N, W] in the width of [N, W, d]."""
    W, d = like.shape[1:]
    lengths = real.sum(dim=1).clamp(min=1)[:, None, None]
    j = torch.arange(1, W + 1, device=like.device)[None, :, None] / lengths
    k = torch.arange(1, d + 1, device=like.device) / d
    weights: Tensor = (1 - j) - k * (1 - 2 * j)
    return weights.to(like)
