"""For each law a component that breaks it, beside the sound one it was made from."""

import random
from typing import ClassVar

import torch
from broken_decoding import BROKEN_DECODING
from torch import Tensor, nn

from zoo import Batch, Outputs
from zoo.plugin import (
    AlignmentContext,
    Blueprint,
    Decoder,
    Embedding,
    Encoder,
    FromParent,
    Mask,
    Memory,
    Metric,
    Position,
    State,
    fused_softmax,
)
from zoo.testing.tiny import (
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


class LinearPosition(Position):
    name: ClassVar[str] = "ramp"

    def add(self, states: Tensor, *, offset: int = 0) -> Tensor:
        return states + torch.arange(offset, offset + states.shape[1])[None, :, None]

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


class PositionDependentScores(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query, prepared) + torch.arange(prepared.shape[-2])


class WrongPairs(TinyScorer):
    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return super().score_pairs(query, key) / 2


class WrongPrepare(TinyScorer):
    def prepare(self, key: Tensor) -> Tensor:
        return 2 * key

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.score(query, key)


class MixesQueries(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query - query.mean(dim=-2, keepdim=True), prepared)


class HalvedGradient(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score((query + query.detach()) / 2, prepared)


class LeakyMaskScorer(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        scores = super().score(query, prepared)
        return scores * scores.mean(dim=-1, keepdim=True).tanh()


class FusedIgnoresMask(Dot):
    def fused(self, query: Tensor, prepared: Tensor, values: Tensor, mask: Mask) -> Tensor:
        return fused_softmax(query, prepared, values, Mask(), scale=1.0)


class FusedWrongScale(Dot):
    def fused(self, query: Tensor, prepared: Tensor, values: Tensor, mask: Mask) -> Tensor:
        return fused_softmax(query, prepared, values, mask, scale=0.5)


class NegativeWeights(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = super().forward(scores, mask)
        return 2 * weights - weights.flip(-1)


class UnnormalizedRows(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return 0.9 * super().forward(scores, mask)


class OverflowingExponential(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = scores.exp() if mask is None else scores.exp().masked_fill(~mask, 0.0)
        return weights / weights.sum(dim=-1, keepdim=True)


class MaskAfterSoftmax(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = scores.softmax(dim=-1)
        return weights if mask is None else weights.masked_fill(~mask, 0.0)


class NearZeroMasked(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return (scores if mask is None else scores.masked_fill(~mask, -20.0)).softmax(dim=-1)


class FullyMaskedNan(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        hidden = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        return hidden.softmax(dim=-1)


class FullyMaskedGradientNan(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = scores.exp() if mask is None else scores.exp() * mask
        return (weights / weights.sum(dim=-1, keepdim=True)).nan_to_num(0.0)


class IgnoresBatchMask(TinyAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return super().forward(scores, mask if scores.dim() == 3 else None)


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


class StateNotReordered(TinyDecoder):
    def start(self, memory: Memory, *, steps: int) -> State:
        self.kept = super().start(memory, steps=steps).per_hypothesis["sum"]
        return State({"row": torch.arange(memory.states.shape[0])})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        times = tokens.shape[0] // self.kept.shape[0]
        kept = self.kept.repeat_interleave(times, dim=0)
        logits, after = super().step(tokens, State({"sum": kept}))
        self.kept = after.per_hypothesis["sum"]
        return logits, state


class ScaledLoss(CrossEntropy):
    def forward(self, outputs: Outputs) -> Tensor:
        return 1.1 * super().forward(outputs)


class CountsPadding(CrossEntropy):
    def forward(self, outputs: Outputs) -> Tensor:
        return super().forward(Outputs(outputs.logits, outputs.targets, outputs.mask | True))


class NegatedLoss(CrossEntropy):
    def forward(self, outputs: Outputs) -> Tensor:
        loss = super().forward(outputs)
        return 2 * loss.detach() - loss


class MergeDropsShards(Accuracy):
    def merge(self, other: "MergeDropsShards") -> None:
        self.correct += other.correct


class MeanOfMeans(Accuracy):
    def compute(self) -> dict[str, float]:
        return {"accuracy": self.correct / (self.total + 1)}


class EmptySignature(Accuracy):
    def signature(self) -> str:
        return ""


class WrongConsumes(Accuracy):
    consumes = "text"


class ConstantMetric(Metric):
    name: ClassVar[str] = "always-one"

    def update(self, predictions: object, references: object) -> None: ...

    def merge(self, other: "ConstantMetric") -> None: ...

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


class UnsavedWeight(Seq2Seq):
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


class UnusedParameter(Seq2Seq):
    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        decoder: Blueprint[Decoder],
    ) -> None:
        super().__init__(source=source, encoder=encoder, decoder=decoder)
        self.unused = nn.Linear(2, 2)


class GraphBreak(Seq2Seq):
    def forward(self, batch: Batch) -> Outputs:
        outputs = super().forward(batch)
        if outputs.logits.sum().item() > 0:
            return outputs
        return Outputs(outputs.logits * 1, outputs.targets, outputs.mask)


class DiffersOnGpu(Seq2Seq):
    def forward(self, batch: Batch) -> Outputs:
        outputs = super().forward(batch)
        scale = 2.0 if outputs.logits.is_cuda else 1.0
        return Outputs(outputs.logits * scale, outputs.targets, outputs.mask)


# (law, broken, sound)
BROKEN = [
    ("documented", Undocumented, Additive),
    ("has-paper", Unpublished, Additive),
    ("valid-schema", InvalidDefault, CrossEntropy),
    ("seeded-init", UnseededInit, TinyScorer),
    ("meta-device", CpuStorage, TinyEmbedding),
    ("output-shape", WrongEmbeddingDim, TinyEmbedding),
    ("inert-padding", NonzeroPadding, TinyEmbedding),
    ("inert-padding", LeakyPadding, TinyEmbedding),
    ("offset", AddIgnoresOffset, LinearPosition),
    ("offset", BiasIgnoresOffset, LinearPosition),
    ("offset", RotateIgnoresOffset, LinearPosition),
    ("key-permutation", PositionDependentScores, TinyScorer),
    ("pair-form", WrongPairs, TinyScorer),
    ("prepared-keys", WrongPrepare, TinyScorer),
    ("prepared-keys", MixesQueries, TinyScorer),
    ("gradients", HalvedGradient, TinyScorer),
    ("masked-attention", LeakyMaskScorer, TinyScorer),
    ("masked-attention", FusedIgnoresMask, Dot),
    ("fused-path", FusedWrongScale, Dot),
    ("valid-weights", NegativeWeights, TinyAlignment),
    ("valid-weights", UnnormalizedRows, TinyAlignment),
    ("valid-weights", OverflowingExponential, TinyAlignment),
    ("masked-keys", MaskAfterSoftmax, TinyAlignment),
    ("masked-keys", NearZeroMasked, TinyAlignment),
    ("fully-masked-rows", FullyMaskedNan, TinyAlignment),
    ("fully-masked-rows", FullyMaskedGradientNan, TinyAlignment),
    ("masked-attention", IgnoresBatchMask, TinyAlignment),
    ("memory-shape", WrongEncoderDim, TinyEncoder),
    ("padding-invariance", MeanOverPadding, TinyEncoder),
    ("inert-padding", EncoderIgnoresMask, TinyEncoder),
    ("step-matches-forward", StepLosesState, TinyDecoder),
    ("causality", NonCausal, TinyDecoder),
    ("masked-memory", DecoderIgnoresMask, TinyDecoder),
    ("state-reordering", StateNotReordered, TinyDecoder),
    *BROKEN_DECODING,
    ("brute-force", ScaledLoss, CrossEntropy),
    ("masked-targets", CountsPadding, CrossEntropy),
    ("descent-direction", NegatedLoss, CrossEntropy),
    ("merged-shards", MergeDropsShards, Accuracy),
    ("matches-reference", MeanOfMeans, Accuracy),
    ("matches-reference", ConstantMetric, Accuracy),
    ("has-signature", EmptySignature, Accuracy),
    ("declared-input", WrongConsumes, Accuracy),
    ("runs-example", NanLogits, Seq2Seq),
    ("save-load", UnsavedWeight, Seq2Seq),
    ("parameter-gradients", UnusedParameter, Seq2Seq),
    ("compiles", GraphBreak, Seq2Seq),
    ("matches-gpu", DiffersOnGpu, Seq2Seq),
]
