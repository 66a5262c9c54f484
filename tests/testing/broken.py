"""Components that violate a law, and the valid ones they are based on.

Here those of the common laws, embeddings, positions, encoders and decoders.
"""

import random
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.plugin import FromParent, Memory, Part, Position, State
from zoo.testing.tiny import TinyDecoder, TinyEmbedding, TinyEncoder, TinyScorer
from zoo_bahdanau.additive import Additive
from zoo_objectives.cross_entropy import CrossEntropy


class Undocumented(Additive):
    """No sentence"""


class Unpublished(Additive):
    paper: ClassVar[str] = ""


class InvalidDefault(CrossEntropy):
    def __init__(self, *, smoothing: int = 0.5) -> None:
        super().__init__(smoothing=smoothing)


class UnseededInit(TinyScorer):
    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim)
        with torch.no_grad():
            self.W.weight.mul_(1 + random.SystemRandom().random())


class CpuStorage(TinyEmbedding):
    def __init__(self) -> None:
        super().__init__()
        self.table.weight = nn.Parameter(torch.randn(self.vocab, self.dim, device="cpu"))


class WrongEmbeddingDim(TinyEmbedding):
    def forward(self, inputs: Tensor) -> Tensor:
        return torch.cat([super().forward(inputs)] * 2, dim=-1)


class NonzeroPadding(TinyEmbedding):
    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) + 1.0


class LeakyPadding(TinyEmbedding):
    def forward(self, inputs: Tensor) -> Tensor:
        vectors = super().forward(inputs)
        return (vectors - vectors.mean(dim=1, keepdim=True)) * self.mask(inputs)[..., None]


class TrainedPadding(TinyEmbedding):
    def unembed(self, states: Tensor) -> Tensor:
        return states @ self.table.weight.T


class LinearPosition(Position):
    name: ClassVar[str] = "linear"

    def add(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        return states + (torch.arange(states.shape[1]) + offset)[..., None]

    def bias(self, T: int, S: int, *, offset: int = 0, device: torch.device) -> Tensor:
        t = torch.arange(T, device=device)[:, None] + offset
        return (torch.arange(S, device=device) - t)[None].double()


class AddIgnoresOffset(LinearPosition):
    def add(self, states: Tensor, *, offset: int = 0) -> Tensor:
        return super().add(states)


class BiasIgnoresOffset(LinearPosition):
    def bias(self, T: int, S: int, *, offset: int = 0, device: torch.device) -> Tensor:
        return super().bias(T, S, device=device)


class RotateIgnoresOffset(LinearPosition):
    def rotate(self, states: Tensor, *, offset: int = 0) -> Tensor:
        return states * (1 + torch.arange(states.shape[2]))[:, None]


class PositionsNotRestarted(LinearPosition):
    def add(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        return super().add(states, offset=offset if isinstance(offset, int) else 0)


class SignedBias(nn.Module):
    """The sum of the query's state, with the sign of the distance to the key."""

    def forward(self, attention, position, states, queries, keys, *, offset=0):
        (sign,) = position("relative", queries, keys, offset=offset)
        return states.sum(dim=-1)[:, None, :, None] * sign.expand(queries.shape[1], -1, -1)


class SignedPosition(Position):
    name: ClassVar[str] = "signed"

    def relative(self, T: int, S: int, *, offset: int = 0, device: torch.device):
        t = torch.arange(T, device=device)[:, None] + offset
        return ((torch.arange(S, device=device) - t).sign().double(),)

    def build_score_bias(self, query_dim: int) -> nn.Module:
        return SignedBias()


class RelativeIgnoresOffset(SignedPosition):
    def relative(self, T: int, S: int, *, offset: int = 0, device: torch.device):
        return super().relative(T, S, device=device)


class MixedBias(SignedBias):
    def forward(self, attention, position, states, queries, keys, *, offset=0):
        mixed = states - states.mean(dim=0)
        return super().forward(attention, position, mixed, queries, keys, offset=offset)


class BiasMixesItems(SignedPosition):
    def build_score_bias(self, query_dim: int) -> nn.Module:
        return MixedBias()


class Doubling:
    def __init__(self, *, dim: FromParent[int]) -> None:
        self.dim = 2 * dim


class DoublingPart(Doubling, Part):
    name: ClassVar[str] = "doubling"


class ExtraParentValue(DoublingPart):
    def __init__(self, *, dim: FromParent[int], depth: FromParent[int]) -> None:
        super().__init__(dim=dim + depth)


class WrongEncoderDim(TinyEncoder):
    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory = super().forward(inputs, mask)
        return Memory(memory.states[..., 1:], mask, memory.summary)


class MeanOverPadding(TinyEncoder):
    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory = super().forward(inputs, mask)
        return Memory(memory.states, mask, memory.states.mean(dim=1))


class EncoderIgnoresMask(TinyEncoder):
    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory = super().forward(inputs, mask)
        return Memory(memory.states, mask, memory.summary + self.map(inputs).sum(dim=1))


class StepLosesState(TinyDecoder):
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        logits, _ = super().step(tokens, state)
        return logits, state


class NonCausal(TinyDecoder):
    def forward(self, targets: Tensor, memory: Memory) -> Tensor:
        logits = super().forward(targets, memory)
        return logits + logits.mean(dim=1, keepdim=True)


class DecoderIgnoresMask(TinyDecoder):
    def start(self, memory: Memory, *, steps: int) -> State:
        state = super().start(memory, steps=steps)
        return State({"sum": state.per_hypothesis["sum"] + memory.states.sum(dim=(1, 2))[:, None]})


class DecoderUsesMaskedTokens(TinyDecoder):
    def start(self, memory: Memory, *, steps: int) -> State:
        state = super().start(memory, steps=steps)
        return State({"sum": state.per_hypothesis["sum"] + memory.tokens.sum(dim=1)[:, None]})


class StateNotReordered(TinyDecoder):
    def start(self, memory: Memory, *, steps: int) -> State:
        self.sums = super().start(memory, steps=steps).per_hypothesis["sum"]
        return State({"row": torch.arange(memory.states.shape[0])})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        times = tokens.shape[0] // self.sums.shape[0]
        sums = self.sums.repeat_interleave(times, dim=0)
        logits, after = super().step(tokens, State({"sum": sums}))
        self.sums = after.per_hypothesis["sum"]
        return logits, state


class SegmentedDecoder(TinyDecoder):
    supports_segments: ClassVar[bool] = True

    def forward(self, targets: Tensor, memory: Memory, segments: Tensor | None = None) -> Tensor:
        if segments is None:
            return super().forward(targets, memory)
        forward = super().forward  # padding, 0, has no effect
        masks = [segments == number for number in segments.unique()]
        return sum(forward(targets * mask, memory) * mask[..., None] for mask in masks)


class SegmentsIgnored(SegmentedDecoder):
    def forward(self, targets: Tensor, memory: Memory, segments: Tensor | None = None) -> Tensor:
        return super().forward(targets, memory)


# (law, broken component, valid component)
BROKEN = [
    ("documented", Undocumented, Additive),
    ("has-paper", Unpublished, Additive),
    ("valid-schema", InvalidDefault, CrossEntropy),
    ("seeded-init", UnseededInit, TinyScorer),
    ("meta-device", CpuStorage, TinyEmbedding),
    ("output-shape", WrongEmbeddingDim, TinyEmbedding),
    ("inert-padding", NonzeroPadding, TinyEmbedding),
    ("inert-padding", LeakyPadding, TinyEmbedding),
    ("tied-padding", TrainedPadding, TinyEmbedding),
    ("offset", AddIgnoresOffset, LinearPosition),
    ("offset", BiasIgnoresOffset, LinearPosition),
    ("offset", RotateIgnoresOffset, LinearPosition),
    ("restarted-positions", PositionsNotRestarted, LinearPosition),
    ("score-bias", RelativeIgnoresOffset, SignedPosition),
    ("score-bias", BiasMixesItems, SignedPosition),
    ("parent-values", ExtraParentValue, DoublingPart),
    ("memory-shape", WrongEncoderDim, TinyEncoder),
    ("padding-invariance", MeanOverPadding, TinyEncoder),
    ("inert-padding", EncoderIgnoresMask, TinyEncoder),
    ("step-matches-forward", StepLosesState, TinyDecoder),
    ("causality", NonCausal, TinyDecoder),
    ("masked-memory", DecoderIgnoresMask, TinyDecoder),
    ("masked-memory", DecoderUsesMaskedTokens, TinyDecoder),
    ("state-reordering", StateNotReordered, TinyDecoder),
    ("segments", SegmentsIgnored, SegmentedDecoder),
]
