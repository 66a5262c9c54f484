"""Report of what a training changes: numbers of parameters, and their learning rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import nn

from zoo.spec.rate_groups import Rate, find_rates
from zoo.spec.spec import Spec
from zoo.spec.trainability import set_trained
from zoo.spec.training import Training


@dataclass(frozen=True)
class RateReport:
    """Parameters of one learning rate: the factor of the optimiser's, and the weight decay that
    replaces the optimiser's, if there is one."""

    lr_factor: float
    weight_decay: float | None
    parameters: int

    def __str__(self) -> str:
        decay = "" if self.weight_decay is None else f", weight decay {self.weight_decay:g}"
        return f"learning rate x {self.lr_factor:.3g}{decay}: {self.parameters:,} parameters"


@dataclass(frozen=True)
class UnfrozenReport:
    """What is also trained after a number of steps.

    Attributes:
        match: the patterns of what is unfrozen.
        rates: its parameters by learning rate.
    """

    at: int
    match: tuple[str, ...]
    rates: tuple[RateReport, ...]

    def lines(self) -> Iterator[str]:
        """Yield the report in words."""
        count = sum(rate.parameters for rate in self.rates)
        what = f"{', '.join(self.match)}, {count:,} parameters"
        yield f"also trained from step {self.at + 1:,} on: {what}"
        yield from (f"  {rate}" for rate in self.rates)


@dataclass(frozen=True)
class TrainedReport:
    """What a training changes from its first step on.

    Attributes:
        parameters: number of parameters that are trained.
        frozen: number of parameters that are not.
        later: number of steps, and number of all parameters that are trained after them.
        rates: parameters by learning rate, if there are several.
        unfrozen: what is also trained after a number of steps.
    """

    parameters: int
    frozen: int
    later: tuple[tuple[int, int], ...] = ()
    rates: tuple[RateReport, ...] = ()
    unfrozen: tuple[UnfrozenReport, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the report in words."""
        if self.frozen:
            yield f"trained: {self.parameters:,} parameters; frozen: {self.frozen:,}"
        yield from (f"  {rate}" for rate in self.rates)
        for each in self.unfrozen:
            yield from each.lines()


def report_trained(spec: Spec, model: nn.Module) -> TrainedReport | None:
    """Return what the section ``train`` trains of a model on the meta device, which is changed.

    None if it trains the whole model with one learning rate.
    """
    if spec.sections.train is None:
        return None
    training: Training = spec.sections.train.build()
    if not (training.freeze or training.groups or training.depth_decay):
        return None
    set_trained(model, training)
    first = _trained(model)
    rates = _report_rates(training, model, first)
    before, later, unfrozen = first, [], []
    for step in sorted({each.at for each in training.unfreeze}):
        set_trained(model, training, step)
        now = _trained(model)
        later.append((step, sum(now.values())))
        added = {name: size for name, size in now.items() if name not in before}
        match = [text for each in training.unfreeze if each.at == step for text in each.match]
        unfrozen.append(UnfrozenReport(step, tuple(match), _report_rates(training, model, added)))
        before = now
    set_trained(model, training)
    trained = sum(first.values())
    return TrainedReport(
        trained,
        sum(weight.numel() for weight in model.parameters()) - trained,
        tuple(later),
        rates if training.groups or training.depth_decay else (),
        tuple(unfrozen),
    )


def _report_rates(
    training: Training, model: nn.Module, sizes: Mapping[str, int]
) -> tuple[RateReport, ...]:
    """Return how many parameters of these, which are trained now, have each rate."""
    rates, counts = find_rates(training, model), dict[Rate, int]()
    for name, size in sizes.items():
        rate = rates.get(name, Rate())
        counts[rate] = counts.get(rate, 0) + size
    found = [RateReport(rate.factor, rate.weight_decay, n) for rate, n in counts.items()]
    return tuple(sorted(found, key=lambda each: -each.lr_factor))


def _trained(model: nn.Module) -> dict[str, int]:
    """Return the size of each parameter that is trained now, by name."""
    return {name: w.numel() for name, w in model.named_parameters() if w.requires_grad}
