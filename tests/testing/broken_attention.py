"""Sequential and stochastic parts that violate a law, and the valid ones they are based on."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo import Outputs
from zoo.plugin import AlignmentContext, Samples
from zoo.testing.tiny import TinyAlignment, TinyScorer
from zoo_alignment.hard import Hard
from zoo_alignment.local_m import LocalM
from zoo_alignment.monotonic import Monotonic
from zoo_location.location import Location
from zoo_location.location_window import LocationWindow
from zoo_objectives.reinforce import Reinforce


class StatefulScorer(TinyScorer):
    """Adds previous weights to the scores, scaled by the sum of previous queries."""

    sequential: ClassVar[bool] = True

    def init_state(self, prepared: Tensor) -> dict[str, Tensor]:
        return {"sum": prepared.new_zeros(prepared.shape[0], 1)}

    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores = self.score(query, prepared) + (state["weights"] * state["sum"].tanh())[:, None]
        return scores, {"sum": state["sum"] + query.sum(dim=-1)}


class StateLeaksMasked(StatefulScorer):
    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores, updated = super().step(query, prepared, state)
        return scores, {"sum": updated["sum"] + prepared.mean(dim=(1, 2))[:, None]}


class StateNotPerRow(StatefulScorer):
    def init_state(self, prepared: Tensor) -> dict[str, Tensor]:
        self.sums = super().init_state(prepared)["sum"]
        return {}

    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores, updated = super().step(query, prepared, {**state, "sum": self.sums})
        self.sums = updated["sum"]
        return scores, {}


class WrongFirstStep(Location):
    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores, updated = super().step(query, prepared, state)
        return scores / 2, updated


class QueriesInteract(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query - query.mean(dim=-2, keepdim=True), prepared)


class DetachedState(Location):
    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return super().step(query, prepared, {"weights": state["weights"].detach()})


class PositionalReadsKeys(LocationWindow):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query, prepared) + prepared.sum(dim=-1)[..., None, :]


class PositionalScoresPairs(LocationWindow):
    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return query.sum(dim=-1) * 0


class UnnormalizedAlignment(TinyAlignment):
    """Declares that its rows do not sum to 1."""

    normalised: ClassVar[bool] = False

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return 0.9 * super().forward(scores, mask)


class RowSumsAboveOne(UnnormalizedAlignment):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return 1.2 * super().forward(scores, mask)


class IgnoresStepIndex(LocalM):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return super().forward(scores, mask)


class ExpectedMonotonic(Monotonic):
    """Monotonic alignment in expectation, which has weight at every step."""

    def __init__(self) -> None:
        super().__init__(mode="soft", r=0.0)


class StopsAtMaskedKey(ExpectedMonotonic):
    """Computes the alignment with masked keys and masks the weights afterwards."""

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = super().forward(scores, None, context)
        return weights if mask is None else weights.masked_fill(~mask, 0.0)


class HiddenState(ExpectedMonotonic):
    """Stores the previous weights in the module instead of the state."""

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        if context is not None:
            last = getattr(self, "last", None)
            context = AlignmentContext(
                context.query, context.offset, context.previous if last is None else last
            )
        weights = super().forward(scores, mask, context)
        self.last = weights[..., -1, :].flip(-1)
        return weights


class ChangesSamples(Hard):
    """Returns the samples of `changed` instead of its own."""

    def forward(
        self,
        scores: Tensor,
        mask: Tensor | None = None,
        context: AlignmentContext | None = None,
        *,
        return_samples: bool = False,
    ) -> Tensor | tuple[Tensor, Samples]:
        weights, samples = super().forward(scores, mask, context, return_samples=True)
        return (weights, self.changed(samples, scores, mask)) if return_samples else weights

    def changed(self, samples: Samples, scores: Tensor, mask: Tensor | None) -> Samples:
        raise NotImplementedError


class WrongLogprob(ChangesSamples):
    def changed(self, samples: Samples, scores: Tensor, mask: Tensor | None) -> Samples:
        return Hard.forward(self, 2 * scores, mask, return_samples=True)[1]


class LogprobOfOtherSample(ChangesSamples):
    def changed(self, samples: Samples, scores: Tensor, mask: Tensor | None) -> Samples:
        return Hard.forward(self, scores, mask, return_samples=True)[1]


class SamplesInEval(Hard):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        training = self.training
        self.train()
        outputs = super().forward(*args, **kwargs)
        self.train(training)
        return outputs


class WrongEntropy(ChangesSamples):
    def changed(self, samples: Samples, scores: Tensor, mask: Tensor | None) -> Samples:
        return Samples(samples.logprob, 2 * samples.entropy)


class NegatedReward(Reinforce):
    def forward(self, outputs: Outputs) -> Tensor:
        if outputs.samples is None:
            return super().forward(outputs)
        negated = Samples(-outputs.samples.logprob, outputs.samples.entropy)
        return super().forward(Outputs(outputs.logits, outputs.targets, outputs.mask, negated))


class CountsPaddedSamples(Reinforce):
    def forward(self, outputs: Outputs) -> Tensor:
        loss = super().forward(outputs)
        return loss if outputs.samples is None else loss + outputs.samples.logprob.mean()


class CoarsePositions(LocalM):
    """Computes positions in the dtype of a matrix product, as autocast returns it."""

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = super().forward(scores, mask, context)
        unit = (torch.ones(1, 1).to(scores) @ torch.ones(1, 1).to(scores)).dtype
        position = torch.arange(scores.shape[-1]).to(unit).to(scores)
        return weights * (position == torch.arange(scores.shape[-1]))


# (law, broken component, valid component)
BROKEN = [
    ("masked-attention", StateLeaksMasked, StatefulScorer),
    ("stepwise-queries", StateNotPerRow, StatefulScorer),
    ("stepwise-queries", WrongFirstStep, Location),
    ("stepwise-queries", QueriesInteract, TinyScorer),
    ("gradients", DetachedState, Location),
    ("key-permutation", PositionalReadsKeys, LocationWindow),
    ("pair-form", PositionalScoresPairs, LocationWindow),
    ("valid-weights", RowSumsAboveOne, UnnormalizedAlignment),
    ("stepwise-queries", IgnoresStepIndex, LocalM),
    ("exact-positions", CoarsePositions, LocalM),
    ("stepwise-queries", HiddenState, ExpectedMonotonic),
    ("masked-keys", StopsAtMaskedKey, ExpectedMonotonic),
    ("masked-attention", StopsAtMaskedKey, ExpectedMonotonic),
    ("sample-statistics", WrongLogprob, Hard),
    ("sample-statistics", LogprobOfOtherSample, Hard),
    ("sample-statistics", SamplesInEval, Hard),
    ("sample-statistics", WrongEntropy, Hard),
    ("brute-force", NegatedReward, Reinforce),
    ("masked-targets", CountsPaddedSamples, Reinforce),
]
