"""Benchmark 'recurrent-training'."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

import zoo
from zoo_lab.bench.result import Goal
from zoo_lab.benchmarks.random_weights import compose_on
from zoo_lab.benchmarks.training_benchmark import Batch, TrainingBenchmark

GOALS = {
    "video-2015": 88e-3,
    "elmo-2018": 29e-3,
    "hierarchical-2015": 28.5e-3,
    "luong-2015": 20e-3,
    "draw-mnist": 16.5e-3,
    "dnc-2016": 13e-3,
    "show-attend-tell-soft": 8.5e-3,
}
"""Seconds for the default batch and length on an H200: half of the first measurement."""


class RecurrentTraining(TrainingBenchmark):
    """A training step of a published model with a recurrence, against the same step on the
    reference path.

    Args:
        spec: the spec of the model.
        batch: number of items of the model's example.
        length: length of the items, where they have one.
    """

    name: ClassVar[str] = "recurrent-training"
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"spec": tuple(GOALS)}
    test_params: ClassVar[Mapping[str, Any]] = {
        "spec": "hierarchical-tiny",
        "batch": 2,
        "length": 4,
    }

    def __init__(
        self,
        *,
        spec: str = "hierarchical-2015",
        batch: Annotated[int, Field(ge=1)] = 8,
        length: Annotated[int, Field(ge=2)] = 32,
    ) -> None:
        self.spec, self.batch, self.length = spec, batch, length

    def prepare(self, device: torch.device) -> None:
        model = compose_on(device, self.spec)
        generator = torch.Generator().manual_seed(0)
        batch = model.example(self.batch, self.length, generator)
        self.prepare_step(model, zoo.objective(self.spec), batch)

    def checked_batch(self) -> Batch:
        return self.batch_on_device

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"reference path": self._reference}

    def _reference(self) -> Callable[[], Any]:
        step = self.build_step(copy.deepcopy(self.model), enabled=False)
        return lambda: step(self.batch_on_device)

    def goal(self) -> Goal:
        is_goal = (self.batch, self.length) == (8, 32)
        return Goal(seconds=GOALS.get(self.spec) if is_goal else None)

    def items(self) -> tuple[int, str]:
        return self.batch, "items"
