"""Broken parts that remember, count or draw, beside the sound ones they were made from."""

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from zoo import Outputs
from zoo.plugin import Choices, Look
from zoo.testing.parts import TinyAlignment, TinyScorer
from zoo_alignment.hard import Hard
from zoo_alignment.local_m import LocalM
from zoo_alignment.monotonic import Monotonic
from zoo_location.location import Location
from zoo_location.location_window import LocationWindow
from zoo_objectives.reinforce import Reinforce


class Remembers(TinyScorer):
    """Adds to its scores where it looked before, and how often it was asked."""

    sequential: ClassVar[bool] = True

    def first(self, prepared: Tensor) -> dict[str, Tensor]:
        return {"sum": prepared.new_zeros(prepared.shape[0], 1)}

    def follow(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores = self.score(query, prepared) + (state["weights"] * state["sum"].tanh())[:, None]
        return scores, {"sum": state["sum"] + query.sum(dim=-1)}


class RemembersWhatIsMasked(Remembers):
    def follow(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores, own = super().follow(query, prepared, state)
        return scores, {"sum": own["sum"] + prepared.mean(dim=(1, 2))[:, None]}


class KeepsRowsToItself(Remembers):
    def first(self, prepared: Tensor) -> dict[str, Tensor]:
        self.kept = super().first(prepared)["sum"]
        return {}

    def follow(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores, own = super().follow(query, prepared, {**state, "sum": self.kept})
        self.kept = own["sum"]
        return scores, {}


class FirstLookOfAnotherFormula(Location):
    def follow(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores, own = super().follow(query, prepared, state)
        return scores / 2, own


class QueriesSeeEachOther(TinyScorer):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query - query.mean(dim=-2, keepdim=True), prepared)


class NoGradientThroughThePast(Location):
    def follow(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return super().follow(query, prepared, {"weights": state["weights"].detach()})


class PlacesThatReadTheKeys(LocationWindow):
    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query, prepared) + prepared.sum(dim=-1)[..., None, :]


class PairsWithoutAPlace(LocationWindow):
    def pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return query.sum(dim=-1) * 0


class Dimmed(TinyAlignment):
    """Not normalised, and says so."""

    normalised: ClassVar[bool] = False

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        return 0.9 * super().forward(scores, mask)


class BrighterThanOne(Dimmed):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        return 1.2 * super().forward(scores, mask)


class CountsFromZero(LocalM):
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        return super().forward(scores, mask)


class Gradual(Monotonic):
    """Monotonic in expectation, so that it never runs out of keys."""

    def __init__(self) -> None:
        super().__init__(mode="soft", r=0.0)


class StopsAtPadding(Gradual):
    """A masked key stops the reader, and what is masked is taken away after."""

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        weights = super().forward(scores, None, look)
        return weights if mask is None else weights.masked_fill(~mask, 0.0)


class BackwardOnceMore(Gradual):
    """Remembers in itself where the last query stopped."""

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> Tensor:
        if look is not None:
            last = getattr(self, "last", None)
            look = Look(look.query, look.offset, look.previous if last is None else last)
        weights = super().forward(scores, mask, look)
        self.last = weights[..., -1, :].flip(-1)
        return weights


class OverstatesItsChances(Hard):
    def choose(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> tuple[Tensor, Choices]:
        weights, _ = super().choose(scores, mask, look)
        return weights, super().choose(2 * scores, mask, look)[1]


class TellsOfAnotherDraw(Hard):
    def choose(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> tuple[Tensor, Choices]:
        weights, _ = super().choose(scores, mask, look)
        return weights, super().choose(scores, mask, look)[1]


class DrawsInEvaluation(Hard):
    def choose(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> tuple[Tensor, Choices]:
        training = self.training
        drawn = self.train()
        weights, choices = Hard.choose(drawn, scores, mask, look)
        self.train(training)
        return weights, choices


class WrongEntropy(Hard):
    def choose(
        self, scores: Tensor, mask: Tensor | None = None, look: Look | None = None
    ) -> tuple[Tensor, Choices]:
        weights, choices = super().choose(scores, mask, look)
        return weights, Choices(choices.logprob, 2 * choices.entropy)


class RewardsTheSurprise(Reinforce):
    def forward(self, outputs: Outputs) -> Tensor:
        if outputs.choices is None:
            return super().forward(outputs)
        turned = Choices(-outputs.choices.logprob, outputs.choices.entropy)
        return super().forward(Outputs(outputs.logits, outputs.targets, outputs.mask, turned))


class RewardsPadding(Reinforce):
    def forward(self, outputs: Outputs) -> Tensor:
        loss = super().forward(outputs)
        return loss if outputs.choices is None else loss + outputs.choices.logprob.mean()


# (law, broken, sound)
BROKEN = [
    ("masked-attention", RemembersWhatIsMasked, Remembers),
    ("queries-in-turn", KeepsRowsToItself, Remembers),
    ("queries-in-turn", FirstLookOfAnotherFormula, Location),
    ("queries-in-turn", QueriesSeeEachOther, TinyScorer),
    ("gradients", NoGradientThroughThePast, Location),
    ("key-permutation", PlacesThatReadTheKeys, LocationWindow),
    ("pair-form", PairsWithoutAPlace, LocationWindow),
    ("weights-are-weights", BrighterThanOne, Dimmed),
    ("queries-in-turn", CountsFromZero, LocalM),
    ("queries-in-turn", BackwardOnceMore, Gradual),
    ("masked-keys", StopsAtPadding, Gradual),
    ("masked-attention", StopsAtPadding, Gradual),
    ("told-choices", OverstatesItsChances, Hard),
    ("told-choices", TellsOfAnotherDraw, Hard),
    ("told-choices", DrawsInEvaluation, Hard),
    ("told-choices", WrongEntropy, Hard),
    ("brute-force", RewardsTheSurprise, Reinforce),
    ("uncounted-targets", RewardsPadding, Reinforce),
]
