"""Objective: what training makes small."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.interfaces.component import Component
from zoo.interfaces.data import Outputs, Samples


class Objective(Component, nn.Module, ABC):
    """A loss over a model's outputs.

    Laws:
        equals its own brute-force reference on tiny cases; targets that do not count change
        nothing.
    """

    kind: ClassVar[str] = "objective"

    def examples(self) -> Sequence[Outputs]:
        """Tiny outputs for the laws, some of them padded, in float64: logits beside as many
        targets, with choices and without. An objective that needs others brings its own."""
        return [
            _example_outputs(seed, with_samples)
            for with_samples in (False, True)
            for seed in range(5)
        ]

    @abstractmethod
    def forward(self, outputs: Outputs) -> Tensor:
        """The loss, one number."""

    @abstractmethod
    def reference(self, outputs: Outputs) -> float:
        """The same number, written as plainly as can be, for the law to compare with."""


def _example_outputs(seed: int, with_samples: bool) -> Outputs:
    """Outputs of three items, as of a model that drew where to look or did not."""
    here, source = torch.empty(0).device, torch.Generator("cpu").manual_seed(seed)

    def noise(*shape: int) -> Tensor:
        numbers = torch.randn(*shape, generator=source, dtype=torch.float64, device="cpu")
        return numbers.to(here)

    targets = torch.randint(0, 5, (3, 4), generator=source, device="cpu").to(here)
    mask = torch.arange(4) < torch.tensor([[4], [1], [2]])
    samples = Samples(-noise(3, 4).abs(), noise(3, 4).abs()) if with_samples else None
    return Outputs(noise(3, 4, 5), targets, mask, samples=samples)
