"""Interface of objectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces.component import Component
from zoo.interfaces.contracts import OutputRequirement
from zoo.interfaces.data import Outputs, Samples


class TrainingTargets(Protocol):
    """The classes of a model and the targets of its training data."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the classes, in the order of their IDs."""
        ...

    def ids(self) -> Iterable[int]:
        """Return the class IDs of all targets of the training data, which is read."""
        ...


class Objective(Component, nn.Module, ABC):
    """Computes the training loss from a model's outputs, and the loss of evaluations.

    In evaluation mode the loss is what ``monitor: loss``, early stopping and schedules use: a
    negative log-likelihood, or another value of which lower is better, that the docstring names.
    It has no terms that only serve the gradient, such as the reward and baseline of REINFORCE.

    Laws:
        `forward` equals `reference` on small examples, in training and in evaluation; in evaluation
        the loss is not negative, is lower for correct than for incorrect predictions, and depends
        neither on log-probabilities of samples nor on previous calls; masked targets have no
        effect; outputs that have exactly what `required_outputs` declares are sufficient and
        necessary; the loss of a batch is the mean of the losses of its parts, weighted by `weight`;
        state that changes in training is in persistent buffers, so that checkpoints contain it.

    Attributes:
        mergeable: whether `weight` is defined for all outputs, so that a batch can be split over
            devices and accumulation steps.
    """

    kind: ClassVar[str] = "objective"
    mergeable: bool = True

    def required_outputs(self) -> OutputRequirement:
        """Return what the objective needs of a model; by default nothing is known."""
        return OutputRequirement()

    def fit(self, targets: TrainingTargets) -> dict[str, Any]:
        """Return the parameters that depend on the training data, such as weights of classes.

        They are set in the spec of the model before it is trained. Default: none.

        Raises:
            ZooError: if a parameter does not fit the classes of the model.
        """
        return {}

    def __call__(self, outputs: Outputs) -> Any:
        """Check the outputs against `required_outputs` and compute the loss."""
        if not torch.compiler.is_compiling():
            if not isinstance(outputs, Outputs):
                found = type(outputs).__name__
                raise ZooError(
                    f"objective '{self.name}' takes the outputs of a model, but got {found}"
                )
            problem = self.required_outputs().check(outputs)
            if problem:
                raise ZooError(f"objective '{self.name}' {problem}")
        return super().__call__(outputs)

    def examples(self) -> Sequence[Outputs]:
        """Return small padded outputs in float64 for the laws, with and without samples.

        Override it if the objective needs other outputs.
        """
        return [
            _example_outputs(seed, with_samples)
            for with_samples in (False, True)
            for seed in range(5)
        ]

    @abstractmethod
    def forward(self, outputs: Outputs) -> Tensor:
        """Compute the loss, a scalar."""

    def weight(self, outputs: Outputs) -> Tensor:
        """Return the number of terms that the loss is a mean of, a scalar.

        By default that of the unmasked positions. Override it if the loss is another mean. If the
        loss is not a mean over independent items, set `mergeable` to False.

        Raises:
            ZooError: if the loss of a batch cannot be computed from the losses of its parts.
        """
        if not self.mergeable:
            raise ZooError(
                f"objective '{self.name}' is not a mean of independent terms, so a batch cannot be "
                "split; use one device and 'accumulate: 1'"
            )
        return outputs.mask.sum()

    @abstractmethod
    def reference(self, outputs: Outputs) -> float:
        """Compute the loss of the current mode with a direct implementation, for comparison."""


def _example_outputs(seed: int, with_samples: bool) -> Outputs:
    """Return the outputs of a batch of three, with or without sampled positions."""
    device, generator = torch.empty(0).device, torch.Generator("cpu").manual_seed(seed)

    def noise(*shape: int) -> Tensor:
        values = torch.randn(*shape, generator=generator, dtype=torch.float64, device="cpu")
        return values.to(device)

    targets = torch.randint(0, 5, (3, 4), generator=generator, device="cpu").to(device)
    mask = torch.arange(4) < torch.tensor([[4], [1], [2]])
    samples = Samples(-noise(3, 4).abs(), noise(3, 4).abs()) if with_samples else None
    return Outputs(noise(3, 4, 5), targets, mask, samples=samples)
