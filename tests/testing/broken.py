"""For each law a component that breaks it, beside the sound one it was made from."""

import random
from typing import ClassVar

import torch
from broken_decoding import BROKEN_DECODING
from torch import Tensor, nn

from zoo import Batch, Outputs
from zoo.plugin import (
    Blueprint,
    Decoder,
    Embedding,
    Encoder,
    Given,
    Look,
    Mask,
    Memory,
    Metric,
    Position,
    State,
    fused_softmax,
)
from zoo.testing.parts import (
    TinyAlignment,
    TinyDecoder,
    TinyEmbedding,
    TinyEncoder,
    TinyScorer,
)
from zoo_bahdanau.additive import Additive
from zoo_luong.dot import Dot
from zoo_metrics.accuracy import Accuracy
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_seq2seq.seq2seq import Seq2Seq


class Undocumented(Additive):
    """Scores somehow"""


class Unpublished(Additive):
    paper: ClassVar[str] = ""


class DefaultBreaksItsOwnType(CrossEntropy):
    def __init__(self, *, smoothing: int = 0.5) -> None:
        super().__init__(smoothing=smoothing)


class WeightsFromTheClock(TinyScorer):
    def __init__(self, *, query_dim: Given[int], key_dim: Given[int]) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim)
        with torch.no_grad():
            self.W.weight.mul_(1 + random.SystemRandom().random())


class StorageOnTheCpu(TinyEmbedding):
    def __init__(self) -> None:
        super().__init__()
        self.table.weight = nn.Parameter(torch.randn(self.vocab, self.dim, device="cpu"))


class WiderThanItSays(TinyEmbedding):
    def forward(self, inputs: Tensor) -> Tensor:
        return torch.cat([super().forward(inputs)] * 2, dim=-1)


class PaddingWithAVector(TinyEmbedding):
    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs) + 1.0


class PaddingLeaksSideways(TinyEmbedding):
    def forward(self, inputs: Tensor) -> Tensor:
        vectors = super().forward(inputs)
        return (vectors - vectors.mean(dim=1, keepdim=True)) * self.mask(inputs)[..., None]


class Ramp(Position):
    name: ClassVar[str] = "ramp"

    def add(self, states: Tensor, *, offset: int = 0) -> Tensor:
        return states + torch.arange(offset, offset + states.shape[1])[None, :, None]

    def bias(self, T: int, S: int, *, offset: int = 0, device: torch.device) -> Tensor:
        t = torch.arange(T, device=device)[:, None] + offset
        return (torch.arange(S, device=device) - t)[None].double()


class AddForgetsTheOffset(Ramp):
    def add(self, states: Tensor, *, offset: int = 0) -> Tensor:
        return super().add(states)


class BiasForgetsTheOffset(Ramp):
    def bias(self, T: int, S: int, *, offset: int = 0, device: torch.device) -> Tensor:
        return super().bias(T, S, device=device)


class RotateForgetsTheOffset(Ramp):
    def rotate(self, states: Tensor, *, offset: int = 0) -> Tensor:
        return states * (1 + torch.arange(states.shape[2]))[:, None]


class KeysCountByTheirPlace(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query, prepared) + torch.arange(prepared.shape[-2])


class PairsOfAnotherFormula(TinyScorer):
    def pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return super().pairs(query, key) / 2


class PreparationChangesTheScore(TinyScorer):
    def prepare(self, key: Tensor) -> Tensor:
        return 2 * key

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.score(query, key)


class QueriesMixed(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query - query.mean(dim=-2, keepdim=True), prepared)


class HalfTheGradient(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score((query + query.detach()) / 2, prepared)


class MaskedKeysStillCount(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        scores = super().score(query, prepared)
        return scores * scores.mean(dim=-1, keepdim=True).tanh()


class FusedForgetsTheMask(Dot):
    def fused(self, query: Tensor, prepared: Tensor, values: Tensor, mask: Mask) -> Tensor:
        return fused_softmax(query, prepared, values, Mask(), scale=1.0)


class FusedAtAnotherScale(Dot):
    def fused(self, query: Tensor, prepared: Tensor, values: Tensor, mask: Mask) -> Tensor:
        return fused_softmax(query, prepared, values, mask, scale=0.5)


class NegativeWeights(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        weights = super().forward(scores, mask)
        return 2 * weights - weights.flip(-1)


class RowsDoNotSumToOne(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        return 0.9 * super().forward(scores, mask)


class OverflowingExponential(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        weights = scores.exp() if mask is None else scores.exp().masked_fill(~mask, 0.0)
        return weights / weights.sum(dim=-1, keepdim=True)


class MaskAfterTheSoftmax(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        weights = scores.softmax(dim=-1)
        return weights if mask is None else weights.masked_fill(~mask, 0.0)


class AlmostMasked(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        return (scores if mask is None else scores.masked_fill(~mask, -20.0)).softmax(dim=-1)


class NothingOpenIsNan(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        hidden = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        return hidden.softmax(dim=-1)


class GradientOfNothingIsNan(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        weights = scores.exp() if mask is None else scores.exp() * mask
        return (weights / weights.sum(dim=-1, keepdim=True)).nan_to_num(0.0)


class NoMaskInBatches(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        return super().forward(scores, mask if scores.dim() == 3 else None)


class NarrowerThanItSays(TinyEncoder):
    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory = super().forward(inputs, mask)
        return Memory(memory.states[..., 1:], mask, memory.summary)


class MeanOverPadding(TinyEncoder):
    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory = super().forward(inputs, mask)
        return Memory(memory.states, mask, memory.states.mean(dim=1))


class ReadsUnderTheMask(TinyEncoder):
    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory = super().forward(inputs, mask)
        return Memory(memory.states, mask, memory.summary + self.map(inputs).sum(dim=1))


class StepsForget(TinyDecoder):
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        logits, _ = super().step(tokens, state)
        return logits, state


class SeesTheFuture(TinyDecoder):
    def forward(self, targets: Tensor, memory: Memory) -> Tensor:
        logits = super().forward(targets, memory)
        return logits + logits.mean(dim=1, keepdim=True)


class LooksUnderTheMask(TinyDecoder):
    def start(self, memory: Memory, *, steps: int) -> State:
        state = super().start(memory, steps=steps)
        return State({"sum": state.moving["sum"] + memory.states.sum(dim=(1, 2))[:, None]})


class StateThatCannotMove(TinyDecoder):
    def start(self, memory: Memory, *, steps: int) -> State:
        self.kept = super().start(memory, steps=steps).moving["sum"]
        return State({"row": torch.arange(memory.states.shape[0])})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        times = tokens.shape[0] // self.kept.shape[0]
        kept = self.kept.repeat_interleave(times, dim=0)
        logits, after = super().step(tokens, State({"sum": kept}))
        self.kept = after.moving["sum"]
        return logits, state


class OffByAFactor(CrossEntropy):
    def forward(self, outputs: Outputs) -> Tensor:
        return 1.1 * super().forward(outputs)


class CountsPadding(CrossEntropy):
    def forward(self, outputs: Outputs) -> Tensor:
        return super().forward(Outputs(outputs.logits, outputs.targets, outputs.mask | True))


class Uphill(CrossEntropy):
    def forward(self, outputs: Outputs) -> Tensor:
        loss = super().forward(outputs)
        return 2 * loss.detach() - loss


class ForgetsShards(Accuracy):
    def merge(self, other: "ForgetsShards") -> None:
        self.right += other.right


class MeanOfMeans(Accuracy):
    def compute(self) -> dict[str, float]:
        return {"accuracy": self.right / (self.total + 1)}


class Unsigned(Accuracy):
    def signature(self) -> str:
        return ""


class SaysItReadsText(Accuracy):
    consumes = "text"


class AlwaysOne(Metric):
    name: ClassVar[str] = "always-one"

    def update(self, predictions: object, references: object) -> None: ...

    def merge(self, other: "AlwaysOne") -> None: ...

    def compute(self) -> dict[str, float]:
        return {"one": 1.0}

    def signature(self) -> str:
        return "one"

    def reference(self, predictions: object, references: object) -> dict[str, float]:
        return {"one": 1.0}

    def example(self, count: int, rng: random.Random) -> tuple[list[int], list[int]]:
        return [0] * count, [0] * count


class NanLogits(Seq2Seq):
    def forward(self, batch: Batch) -> Outputs:
        outputs = super().forward(batch)
        return Outputs(outputs.logits * float("nan"), outputs.targets, outputs.mask)


class WeightNobodySaves(Seq2Seq):
    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        decoder: Blueprint[Decoder],
    ) -> None:
        super().__init__(source=source, encoder=encoder, decoder=decoder)
        self.secret = [torch.randn(7)]

    def forward(self, batch: Batch) -> Outputs:
        outputs = super().forward(batch)
        return Outputs(outputs.logits + self.secret[0], outputs.targets, outputs.mask)


class DeadWeight(Seq2Seq):
    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        decoder: Blueprint[Decoder],
    ) -> None:
        super().__init__(source=source, encoder=encoder, decoder=decoder)
        self.unused = nn.Linear(2, 2)


class AsksTheHost(Seq2Seq):
    def forward(self, batch: Batch) -> Outputs:
        outputs = super().forward(batch)
        if outputs.logits.sum().item() > 0:
            return outputs
        return Outputs(outputs.logits * 1, outputs.targets, outputs.mask)


class OtherOnTheGpu(Seq2Seq):
    def forward(self, batch: Batch) -> Outputs:
        outputs = super().forward(batch)
        scale = 2.0 if outputs.logits.is_cuda else 1.0
        return Outputs(outputs.logits * scale, outputs.targets, outputs.mask)


# (law, broken, sound)
BROKEN = [
    ("documented", Undocumented, Additive),
    ("published", Unpublished, Additive),
    ("honest-schema", DefaultBreaksItsOwnType, CrossEntropy),
    ("seeded", WeightsFromTheClock, TinyScorer),
    ("weightless-check", StorageOnTheCpu, TinyEmbedding),
    ("declared-width", WiderThanItSays, TinyEmbedding),
    ("inert-padding", PaddingWithAVector, TinyEmbedding),
    ("inert-padding", PaddingLeaksSideways, TinyEmbedding),
    ("offset", AddForgetsTheOffset, Ramp),
    ("offset", BiasForgetsTheOffset, Ramp),
    ("offset", RotateForgetsTheOffset, Ramp),
    ("key-permutation", KeysCountByTheirPlace, TinyScorer),
    ("pair-form", PairsOfAnotherFormula, TinyScorer),
    ("prepared-keys", PreparationChangesTheScore, TinyScorer),
    ("prepared-keys", QueriesMixed, TinyScorer),
    ("gradients", HalfTheGradient, TinyScorer),
    ("masked-attention", MaskedKeysStillCount, TinyScorer),
    ("masked-attention", FusedForgetsTheMask, Dot),
    ("fused-path", FusedAtAnotherScale, Dot),
    ("weights-are-weights", NegativeWeights, TinyAlignment),
    ("weights-are-weights", RowsDoNotSumToOne, TinyAlignment),
    ("weights-are-weights", OverflowingExponential, TinyAlignment),
    ("masked-keys", MaskAfterTheSoftmax, TinyAlignment),
    ("masked-keys", AlmostMasked, TinyAlignment),
    ("nothing-open", NothingOpenIsNan, TinyAlignment),
    ("nothing-open", GradientOfNothingIsNan, TinyAlignment),
    ("masked-attention", NoMaskInBatches, TinyAlignment),
    ("declared-form", NarrowerThanItSays, TinyEncoder),
    ("padding-invariance", MeanOverPadding, TinyEncoder),
    ("inert-padding", ReadsUnderTheMask, TinyEncoder),
    ("steps-equal-forcing", StepsForget, TinyDecoder),
    ("causality", SeesTheFuture, TinyDecoder),
    ("masked-memory", LooksUnderTheMask, TinyDecoder),
    ("reordering", StateThatCannotMove, TinyDecoder),
    *BROKEN_DECODING,
    ("brute-force", OffByAFactor, CrossEntropy),
    ("uncounted-targets", CountsPadding, CrossEntropy),
    ("downhill", Uphill, CrossEntropy),
    ("merged-shards", ForgetsShards, Accuracy),
    ("agrees-with-reference", MeanOfMeans, Accuracy),
    ("agrees-with-reference", AlwaysOne, Accuracy),
    ("signed", Unsigned, Accuracy),
    ("declared-input", SaysItReadsText, Accuracy),
    ("runs-its-example", NanLogits, Seq2Seq),
    ("saved-and-loaded", WeightNobodySaves, Seq2Seq),
    ("every-weight-learns", DeadWeight, Seq2Seq),
    ("compiles", AsksTheHost, Seq2Seq),
    ("same-on-gpu", OtherOnTheGpu, Seq2Seq),
]
