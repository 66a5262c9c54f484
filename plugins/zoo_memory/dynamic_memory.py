"""Dynamic memory network."""

from dataclasses import replace
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Embedding,
    Encoder,
    OutputSchema,
    RecordsAttention,
    TensorSchema,
    WidthConflict,
    forbid_stochastic,
)
from zoo_memory.story import (
    answer_outputs,
    random_story,
    require_vocab,
    story_schema,
    validate_story,
)


class DynamicMemory(Model):
    r"""Dynamic memory network: predicts the answer to a question from gated passes over facts.

    .. math::
        g^i_t = \sigma(W_2 \tanh(W_1 z(c_t, m^{i-1}, q) + b_1) + b_2), \quad
        h^i_t = g^i_t\, \mathrm{GRU}(c_t, h^i_{t-1}) + (1 - g^i_t)\, h^i_{t-1}

        m^i = \mathrm{GRU}(h^i_S, m^{i-1}), \qquad
        z(c, m, q) = [c, m, q, c \odot q, c \odot m, |c - q|, |c - m|, c^\top W q, c^\top W m]

    The answer is one word, predicted by a last GRU step from the memory. If a batch labels the
    relevant facts, the objective `supporting-facts` trains the gates on them, as in the paper.

    Paper: Kumar et al. 2016, equations 4 to 7.

    Args:
        source: word embedding.
        encoder: encoder of the words of all facts, and of the question; the state at the end of a
            sentence represents the fact.
        episodes: number of passes over the facts.
        hidden: width of the gates' hidden layer; the encoder's width if not set.

    Shapes:
        batch {story [B, S, W], question [B, Q], both padded, target [B]; optional support
        [B, S, episodes] of 0 and 1, the relevant facts of each pass} -> logits [B, 1, vocab].
    """

    name: ClassVar[str] = "dynamic-memory"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
    paper: ClassVar[str] = (
        "Kumar et al. 2016, Ask Me Anything: Dynamic Memory Networks, arXiv:1506.07285"
    )

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        episodes: Annotated[int, Field(ge=1, le=64)] = 3,
        hidden: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        super().__init__()
        self.episodes = episodes
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        width = self.encoder.output_dim
        if self.encoder.summary_dim != width:
            raise WidthConflict(
                "the encoder's states (facts) and summary (question) must have the same width",
                output_dim=width,
                summary_dim=self.encoder.summary_dim,
            )
        self.hidden = hidden = hidden or width
        self.likeness = nn.Linear(width, width, bias=False)
        self.gate = nn.Sequential(nn.Linear(7 * width + 2, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.attention = RecordsAttention()
        self.episode = nn.GRUCell(width, width)
        self.update = nn.GRUCell(width, width)
        self.answer = nn.GRUCell(width, width)
        self.out = nn.Linear(width, require_vocab(self.source), bias=False)

    def forward(self, batch: Batch) -> Outputs:
        story, question = validate_story(batch)
        facts, fact_mask = self._facts(story)
        q = self.encoder(self.source(question), self.source.mask(question)).summary
        m, gate_logits = q, []
        for _ in range(self.episodes):
            gate_logits.append(self._gates(facts, m, q))  # [B, S]
            gates = gate_logits[-1].sigmoid() * fact_mask
            self.attention.record(gates[:, None, None])
            h = torch.zeros_like(m)
            for t in range(facts.shape[1]):
                g = gates[:, t, None]
                h = g * self.episode(facts[:, t], h) + (1 - g) * h
            m = self.update(h, m)
        outputs = answer_outputs(self.out(self.answer(q, m)), batch)
        if "support" not in batch:
            return outputs
        gate_outputs = Outputs(torch.stack(gate_logits, dim=-1), batch["support"], fact_mask)
        return replace(outputs, auxiliary={"gates": gate_outputs})

    def _facts(self, story: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state at the end of each sentence [B, S, D], and the mask [B, S]."""
        B, S, W = story.shape
        words = story.reshape(B, S * W)
        mask = self.source.mask(words)
        # Each sentence is padded, but the encoder expects all valid words first.
        order = (~mask).to(torch.uint8).argsort(dim=1, stable=True)
        packed = self.source(words.gather(1, order))
        states = self.encoder(packed, mask.gather(1, order)).states
        lengths = mask.view(B, S, W).sum(dim=-1)
        ends = (lengths.cumsum(dim=1) - 1).clamp(min=0)[..., None].expand(-1, -1, states.shape[-1])
        return states.gather(1, ends), lengths > 0

    def _gates(self, facts: Tensor, m: Tensor, q: Tensor) -> Tensor:
        m, q = m[:, None].expand_as(facts), q[:, None].expand_as(facts)
        projected = self.likeness(facts)
        features = [facts, m, q, facts * q, facts * m, (facts - q).abs(), (facts - m).abs()]
        dots = [(projected * other).sum(dim=-1, keepdim=True) for other in (q, m)]
        logits: Tensor = self.gate(torch.cat([*features, *dots], dim=-1))[..., 0]
        return logits

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        support = TensorSchema(("B", "N", self.episodes), optional=True)
        return {**story_schema(self.source, inference=inference), "support": support}

    def output_schema(self) -> OutputSchema:
        gates = OutputSchema(logits="position", targets="multi-label")
        return OutputSchema(logits="item", auxiliary={"gates": gates}, optional=("gates",))

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return random_story(self.source, batch, length, generator)
