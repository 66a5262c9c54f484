"""Laws of initialisers."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from zoo.interfaces import ROLES, Initialiser, Role, Weight
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.helpers import assert_equal

_SHAPES: dict[Role, tuple[int, ...]] = {
    "convolution": (30, 20, 5, 5),
    "recurrent": (400, 100),
    "vector": (10_000,),
    "bias": (10_000,),
    "norm": (10_000,),
    "special": (10_000,),
}
_PADDING = 3


def _weights() -> Iterator[Weight]:
    """Yield weights of every role with the values 0.5, in double precision."""
    for role in ROLES:
        for kind in ("scorer", "decoder"):
            for num_residual in (0, 8):
                yield Weight(
                    f"{kind}.{role}",
                    torch.full(_SHAPES.get(role, (120, 100)), 0.5, dtype=torch.float64),
                    role,
                    kind,
                    num_residual,
                    _PADDING if role == "embedding" else None,
                )


def _initialised(config: Configuration, seed: int = 0) -> list[tuple[Initialiser, Weight]]:
    initialiser = config.build()
    weights = list(_weights())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for weight in weights:
            initialiser(weight)
    return [(initialiser, weight) for weight in weights]


def _values(weight: Weight) -> Tensor:
    """Return the values without the padding row."""
    if weight.padding is None:
        return weight.tensor
    rows = torch.arange(weight.tensor.shape[0], device=weight.tensor.device)
    return weight.tensor[rows != weight.padding]


def seeded_values(config: Configuration) -> None:
    """A seed always gives the same values."""
    for (_, first), (_, second) in zip(_initialised(config), _initialised(config), strict=True):
        assert_equal(second.tensor, first.tensor, f"{first.name} with the same seed")


def declared_weights(config: Configuration) -> None:
    """All values of a weight with an initial_std are changed; other weights, and those with the
    role 'special', are not changed."""
    for initialiser, weight in _initialised(config):
        values = _values(weight)
        if not initialiser.changes(weight):
            assert (values == 0.5).all(), f"{weight.name} was changed"
        else:
            unchanged = int((values == 0.5).sum())
            assert unchanged == 0, f"{unchanged} values of {weight.name} were not changed"


def padding_rows(config: Configuration) -> None:
    """The padding row of an embedding is 0 after its initialisation."""
    for initialiser, weight in _initialised(config):
        if weight.padding is not None and initialiser.changes(weight):
            assert (weight.tensor[weight.padding] == 0).all(), "the padding row is not 0"


def declared_std(config: Configuration) -> None:
    """Values have the mean 0 and the standard deviation that initial_std declares."""
    for initialiser, weight in _initialised(config):
        std = initialiser.initial_std(weight)
        if std is None or not initialiser.changes(weight):
            continue
        values = _values(weight)
        found = values.square().mean().sqrt().item()
        # Each tensor has at least 10,000 values: 5 % is seven standard errors.
        assert abs(found - std) <= 0.05 * std, (
            f"{weight.name} has the standard deviation {found:.4g}, declared is {std:.4g}"
        )
        max_mean = 5 * std / values.numel() ** 0.5
        assert abs(values.mean().item()) <= max_mean, f"the mean of {weight.name} is not 0"


LAWS = (
    Law("seeded-values", seeded_values),
    Law("declared-weights", declared_weights),
    Law("padding-rows", padding_rows),
    Law("declared-std", declared_std),
)
