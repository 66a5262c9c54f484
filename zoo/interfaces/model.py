"""Model: the assembly of the other parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from zoo.errors import ZooError
from zoo.interfaces.component import Component
from zoo.interfaces.data import Batch, Decoded, Outputs
from zoo.interfaces.filter import Filter
from zoo.interfaces.sampler import Sampler


class Model(Component, nn.Module, ABC):
    """Reads batches, gives outputs, and generates where it can.

    Laws:
        save then load is bit-exact; the CPU equals the GPU within tolerance; the forward pass
        compiles without graph breaks; every parameter gets a gradient.

    Attributes:
        spec: the resolved spec the model was composed from, and None if it was built by hand.
        lock: who provided each of its components.
    """

    kind: ClassVar[str] = "model"

    spec: Mapping[str, Any] | None = None
    lock: tuple[Mapping[str, Any], ...] = ()

    @abstractmethod
    def forward(self, batch: Batch) -> Outputs:
        """The outputs for a batch, beside its targets."""

    @abstractmethod
    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, torch.Tensor]:
        """A random batch on the model's device, every item ``length`` long."""

    def generate(
        self,
        batch: Batch,
        sampler: Sampler,
        *,
        max_length: int,
        generator: torch.Generator | None = None,
        filters: Sequence[Filter] = (),
    ) -> Decoded:
        """Continue each item of the batch until its end token, or max_length tokens."""
        raise ZooError(f"model '{self.name}' does not generate")
