"""Interface of programs: measurements that training and evaluation do not make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class ProgramRun:
    """What a program runs with.

    Attributes:
        folder: the folder of the run, where a program may write files.
        model: file of the trained model; None if the recipe has no spec.
        device: the device.
        seed: random seed.
        progress: takes the name of a task, and the number of finished and of all steps.
    """

    folder: Path
    model: Path | None
    device: torch.device
    seed: int
    progress: Callable[[str, int, int], None] | None = None


class Program(ABC):
    """Computes figures of a reproduction that ``zoo.train`` and ``zoo.evaluate`` do not compute.

    A plugin registers a subclass that also inherits from `Part`; the key ``program`` of a recipe
    selects it by name.
    """

    @abstractmethod
    def run(self, run: ProgramRun) -> Mapping[str, float]:
        """Return the figures by name, such as ``test/perplexity``."""
