"""Objectives, metrics and models that violate a law, and the valid ones they are based on."""

import random
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo import Batch, Model, Outputs
from zoo.plugin import Blueprint, Decoder, Embedding, Encoder, GenerationInputs, Metric
from zoo_metrics.accuracy import Accuracy
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_seq2seq.seq2seq import Seq2Seq
from zoo_vision.classifier import Classifier


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


class HoldsModule(Accuracy):
    def __init__(self) -> None:
        super().__init__()
        self.library = random


class CountsNotPickled(Accuracy):
    def __getstate__(self) -> dict[str, int]:
        return {"correct": 0, "total": self.total}


class WrongConsumes(Accuracy):
    consumes = "text"


class WrongDirection(Accuracy):
    lower_is_better = True


class ConstantMetric(Metric):
    name: ClassVar[str] = "constant"

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


class CountsCalls(Seq2Seq):
    calls = 0

    def forward(self, batch: Batch) -> Outputs:
        self.calls += self.training
        outputs = super().forward(batch)
        return Outputs(outputs.logits + self.calls, outputs.targets, outputs.mask)


class ChangesWithoutNotice(Seq2Seq):
    def observe_validation(self, *, is_best: bool) -> bool:
        with torch.no_grad():
            for parameter in self.decoder.parameters():
                parameter.mul_(2.0)
        return False


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


class UndeclaredGeneration(Seq2Seq):
    generation_input = None


class NoEmbedding(Seq2Seq):
    def get_embedding(self, side: str) -> Embedding:
        return Model.get_embedding(self, side)


class OtherBatchKey(Seq2Seq):
    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        return super().prepare_generation({"source": batch["text"]})


class WrongEnd(Seq2Seq):
    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        memory = self.encode(batch["source"])
        every = tuple(range(3, self.vocab_size("target")))
        return GenerationInputs(self.decoder, memory, bos=self.bos, eos=every, pad=self.pad)


class InputWithoutGeneration(Classifier):
    generation_input = "source"


# (law, broken component, valid component)
BROKEN = [
    ("brute-force", ScaledLoss, CrossEntropy),
    ("masked-targets", CountsPadding, CrossEntropy),
    ("descent-direction", NegatedLoss, CrossEntropy),
    ("merged-shards", MergeDropsShards, Accuracy),
    ("matches-reference", MeanOfMeans, Accuracy),
    ("matches-reference", ConstantMetric, Accuracy),
    ("has-signature", EmptySignature, Accuracy),
    ("pickled", HoldsModule, Accuracy),
    ("pickled", CountsNotPickled, Accuracy),
    ("declared-input", WrongConsumes, Accuracy),
    ("declared-direction", WrongDirection, Accuracy),
    ("runs-example", NanLogits, Seq2Seq),
    ("save-load", UnsavedWeight, Seq2Seq),
    ("restored-state", CountsCalls, Seq2Seq),
    ("declared-phases", ChangesWithoutNotice, Seq2Seq),
    ("parameter-gradients", UnusedParameter, Seq2Seq),
    ("compiles", GraphBreak, Seq2Seq),
    ("matches-gpu", DiffersOnGpu, Seq2Seq),
    ("same-generation", UndeclaredGeneration, Seq2Seq),
    ("same-generation", NoEmbedding, Seq2Seq),
    ("same-generation", OtherBatchKey, Seq2Seq),
    ("same-generation", WrongEnd, Seq2Seq),
    ("same-generation", InputWithoutGeneration, Seq2Seq),
]
