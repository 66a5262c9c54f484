"""A minimal component of each kind, for the slots of components under test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.interfaces import (
    Alignment,
    AlignmentContext,
    Backbone,
    Component,
    Decoder,
    Embedding,
    Encoder,
    Filter,
    Initialiser,
    Memory,
    Objective,
    Optimiser,
    OutputRequirement,
    Outputs,
    Position,
    Sampler,
    Schedule,
    Scorer,
    Selection,
    State,
    TensorSchema,
    Weight,
)
from zoo.interfaces.signature import FromParent
from zoo.testing.tiny_adapter import TinyAdapter
from zoo.testing.tiny_dataset import TinyDataset
from zoo.testing.tiny_preprocessor import TinyPreprocessor

PLUGIN = "zoo-testing"


class TinyEmbedding(Embedding):
    """Embedding of seven tokens."""

    name: ClassVar[str] = "tiny"
    vocab: int = 7
    padding: int = 0

    def __init__(self) -> None:
        super().__init__()
        self.dim = 5
        self.table = nn.Embedding(self.vocab, self.dim, padding_idx=0)

    def forward(self, inputs: Tensor) -> Tensor:
        vectors: Tensor = self.table(inputs)
        return vectors

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", "S"), "integer", below=self.vocab)

    def unembed(self, states: Tensor) -> Tensor:
        return self.tied_logits(states, self.table.weight, self.padding)

    def mask(self, inputs: Tensor) -> Tensor:
        return inputs != 0

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = self.table.weight.device
        where = generator.device if generator else device
        shape = (batch, length)
        return torch.randint(1, self.vocab, shape, generator=generator, device=where).to(device)


class TinyBackbone(Backbone):
    """A single convolution."""

    name: ClassVar[str] = "tiny"

    def __init__(self, *, channels: FromParent[int]) -> None:
        super().__init__()
        self.output_dim = 5
        self.map = nn.Conv2d(channels, self.output_dim, 4, stride=4)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.map(images)
        return features


class TinyPosition(Position):
    """Position without effect."""

    name: ClassVar[str] = "tiny"


class TinyScorer(Scorer):
    """Bilinear score, for queries and keys of any sizes."""

    name: ClassVar[str] = "tiny"

    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__()
        self.W = nn.Linear(key_dim, query_dim, bias=False)

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        scores: Tensor = query @ self.W(prepared).transpose(-1, -2)
        return scores

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        scores: Tensor = (query * self.W(key)).sum(dim=-1)
        return scores


class TinyAlignment(Alignment):
    """Softmax over the unmasked keys."""

    name: ClassVar[str] = "tiny"

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        if mask is None:
            return scores.softmax(dim=-1)
        lowest = torch.finfo(scores.dtype).min
        return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


class TinyEncoder(Encoder):
    """Linear map of each position; the summary is the mean."""

    name: ClassVar[str] = "tiny"

    def __init__(self, *, input_dim: FromParent[int]) -> None:
        super().__init__()
        self.output_dim = self.summary_dim = 6
        self.carry: Mapping[str, tuple[int, int]] = {}
        self.map = nn.Linear(input_dim, self.output_dim)

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        states = self.map(inputs) * mask[..., None]
        return Memory(states, mask, states.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1))


class TinyDecoder(Decoder):
    """Linear map of the sum of the summary and the embedded tokens so far."""

    name: ClassVar[str] = "tiny"

    def __init__(self, *, embedding: FromParent[Embedding], summary_dim: FromParent[int]) -> None:
        super().__init__()
        self.embedding = embedding
        self.first = nn.Linear(summary_dim, embedding.dim) if summary_dim else None
        self.out = nn.Linear(embedding.dim, embedding.vocab or 1)

    def start(self, memory: Memory, *, steps: int) -> State:
        if self.first is not None:
            return State({"sum": self.first(memory.summary)})
        zeros = self.out.weight.new_zeros(memory.summary.shape[0], self.out.in_features)
        return State({"sum": zeros})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        sums = state.per_hypothesis["sum"][:, None] + self.embedding(tokens).cumsum(dim=1)
        logits: Tensor = self.out(sums.tanh())
        return logits, state.updated({"sum": sums[:, -1]})


class TinyInitialiser(Initialiser):
    """Standard normal distribution for all weights except norms."""

    name: ClassVar[str] = "tiny"

    def initial_std(self, weight: Weight) -> float | None:
        return None if weight.role == "norm" else 1.0

    def fill(self, weight: Weight) -> None:
        weight.tensor.normal_()


class TinyFilter(Filter):
    """Excludes the last token."""

    name: ClassVar[str] = "tiny"

    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return logprobs.scatter(-1, tokens[..., -1:], float("-inf"))


class TinySampler(Sampler):
    """Selects the most likely token."""

    name: ClassVar[str] = "tiny"

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        best, tokens = logprobs.max(dim=-1)
        return Selection(tokens, torch.zeros_like(tokens), scores + best)


class TinyObjective(Objective):
    """Mean squared difference between 1 and the logits of the targets."""

    name: ClassVar[str] = "tiny"

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        targets = outputs.targets.where(outputs.mask, 0)[..., None]
        errors = (outputs.logits.gather(-1, targets)[..., 0] - 1).square()
        return errors.where(outputs.mask, 0.0).sum() / outputs.mask.sum().clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        rows, targets = outputs.logits[outputs.mask], outputs.targets[outputs.mask].tolist()
        errors = [(float(row[target]) - 1) ** 2 for row, target in zip(rows, targets, strict=True)]
        return sum(errors) / max(len(errors), 1)


class TinyOptimiser(Optimiser):
    """Gradient descent with momentum."""

    name: ClassVar[str] = "tiny"
    lr: float = 0.1

    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        named = [(weight.name, weight.tensor) for weight in weights]
        return torch.optim.SGD(named, lr=self.lr, momentum=0.5)


class TinySchedule(Schedule):
    """Constant learning rate."""

    name: ClassVar[str] = "tiny"

    def factor(self, step: int) -> float:
        return 1.0


TINY_COMPONENTS: tuple[type[Component], ...] = (
    TinyBackbone,
    TinyEmbedding,
    TinyPosition,
    TinyScorer,
    TinyAlignment,
    TinyEncoder,
    TinyDecoder,
    TinyInitialiser,
    TinyFilter,
    TinySampler,
    TinyObjective,
    TinyOptimiser,
    TinySchedule,
    TinyDataset,
    TinyPreprocessor,
    TinyAdapter,
)
