"""Report of what a training changes: numbers of parameters, and their learning rates."""

from __future__ import annotations

from collections.abc import Iterator
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
class TrainedReport:
    """What a training changes from its first step on.

    Attributes:
        parameters: number of parameters that are trained.
        frozen: number of parameters that are not.
        later: number of steps, and number of parameters that are trained after them.
        rates: parameters by learning rate, if there are several.
    """

    parameters: int
    frozen: int
    later: tuple[tuple[int, int], ...] = ()
    rates: tuple[RateReport, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the report in words."""
        if self.frozen:
            yield f"trained: {self.parameters:,} parameters; frozen: {self.frozen:,}"
        for step, parameters in self.later:
            yield f"trained from step {step + 1:,} on: {parameters:,} parameters"
        yield from map(str, self.rates)


def report_trained(spec: Spec, model: nn.Module) -> TrainedReport | None:
    """Return what the section ``train`` trains of a model on the meta device, which is changed.

    None if it trains the whole model with one learning rate.
    """
    if spec.sections.train is None:
        return None
    training: Training = spec.sections.train.build()
    if not (training.freeze or training.groups or training.depth_decay):
        return None
    later = []
    for step in sorted({each.at for each in training.unfreeze}):
        set_trained(model, training, step)
        later.append((step, _count(model)))
    set_trained(model, training)
    rates, counts = find_rates(training, model), dict[Rate, int]()
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            rate = rates.get(name, Rate())
            counts[rate] = counts.get(rate, 0) + weight.numel()
    total = sum(weight.numel() for weight in model.parameters())
    several = [RateReport(rate.factor, rate.weight_decay, n) for rate, n in counts.items()]
    several.sort(key=lambda each: -each.lr_factor)
    uses_rates = bool(training.groups or training.depth_decay)
    trained = _count(model)
    return TrainedReport(
        trained, total - trained, tuple(later), tuple(several) if uses_rates else ()
    )


def _count(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
