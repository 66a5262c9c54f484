"""Optimisers, schedules and objectives that violate a law, and the valid ones they are based on."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Weight
from zoo.testing.tiny import TinyObjective, TinyOptimiser, TinySchedule
from zoo_optimisers.plateau import Plateau


class Ascent(TinyOptimiser):
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return torch.optim.SGD([weight.tensor for weight in weights], lr=self.lr, maximize=True)


class LeavesOutBiases(TinyOptimiser):
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return super().build([weight for weight in weights if weight.role != "bias"])


class _DecaysAll(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        super().step()
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.mul_(1 - 0.001 * group["lr"])


class DecaysWithoutGradient(TinyOptimiser):
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return _DecaysAll([weight.tensor for weight in weights], lr=self.lr)


class OtherRate(TinyOptimiser):
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return torch.optim.SGD([weight.tensor for weight in weights], lr=self.lr / 2)


class _FixedRate(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(0.1 * parameter.grad)


class IgnoresGroupRate(TinyOptimiser):
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return _FixedRate([weight.tensor for weight in weights], lr=self.lr)


class _CountsOutsideState(torch.optim.SGD):
    count = 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        self.count += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(group["lr"] / self.count * parameter.grad)


class StateNotSaved(TinyOptimiser):
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return _CountsOutsideState([weight.tensor for weight in weights], lr=self.lr)


class _ObjectInState(torch.optim.SGD):
    def step(self, closure: Any = None) -> None:
        super().step()
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["history"] = {parameter}


class StateWithObjects(TinyOptimiser):
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return _ObjectInState([weight.tensor for weight in weights], lr=self.lr)


class _CountsInGroups(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            group["count"] = group.get("count", 0) + 1
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(group["lr"] / group["count"] * parameter.grad)


class StateInGroups(TinyOptimiser):
    def build(self, weights: Sequence[Weight]) -> torch.optim.Optimizer:
        return _CountsInGroups([weight.tensor for weight in weights], lr=self.lr)


class NegativeFactor(TinySchedule):
    def factor(self, step: int) -> float:
        return 1 - step / 50


class CountsCalls(TinySchedule):
    calls = 0

    def factor(self, step: int) -> float:
        self.calls += 1
        return 1 / self.calls


class RandomFactor(TinySchedule):
    def factor(self, step: int) -> float:
        return random.SystemRandom().random()


class LosesState(Plateau):
    def state(self) -> Mapping[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass


class RemembersInfinity(Plateau):
    def observe(self, value: float) -> None:
        self._best = value if self._best is None else min(self._best, value)


class LosesCount(Plateau):
    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore({**state, "num_bad": 0})


class WeightOfItems(TinyObjective):
    def weight(self, outputs: Outputs) -> Tensor:
        return outputs.mask.any(dim=1).sum()


class LossOverPadding(TinyObjective):
    def weight(self, outputs: Outputs) -> Tensor:
        return outputs.mask.any(dim=1).sum()

    def forward(self, outputs: Outputs) -> Tensor:
        total = super().forward(outputs) * outputs.mask.sum()
        return total / outputs.mask.numel()


class BaselineOutsideBuffers(TinyObjective):
    baseline = 0.0

    def forward(self, outputs: Outputs) -> Tensor:
        loss = super().forward(outputs)
        self.baseline = 0.9 * self.baseline + 0.1 * loss.item()
        return loss - self.baseline


class SurrogateInEvaluation(TinyObjective):
    def forward(self, outputs: Outputs) -> Tensor:
        loss = super().forward(outputs)
        if outputs.samples is None:
            return loss
        return loss + loss.detach() * outputs.samples.logprob.where(outputs.mask, 0.0).sum()


# (law, broken component, valid component)
BROKEN = [
    ("decreasing-loss", Ascent, TinyOptimiser),
    ("updated-weights", LeavesOutBiases, TinyOptimiser),
    ("updated-weights", DecaysWithoutGradient, TinyOptimiser),
    ("learning-rate", OtherRate, TinyOptimiser),
    ("learning-rate", IgnoresGroupRate, TinyOptimiser),
    ("restored-state", StateNotSaved, TinyOptimiser),
    ("restored-state", StateWithObjects, TinyOptimiser),
    ("restored-state", StateInGroups, TinyOptimiser),
    ("valid-factors", NegativeFactor, TinySchedule),
    ("repeatable-factors", CountsCalls, TinySchedule),
    ("repeatable-factors", RandomFactor, TinySchedule),
    ("restored-state", LosesState, Plateau),
    ("restored-state", LosesCount, Plateau),
    ("restored-state", RemembersInfinity, Plateau),
    ("merged-batches", WeightOfItems, TinyObjective),
    ("merged-batches", LossOverPadding, TinyObjective),
    ("restored-state", BaselineOutsideBuffers, TinyObjective),
    ("evaluation-loss", SurrogateInEvaluation, TinyObjective),
]
