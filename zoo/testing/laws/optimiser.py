"""Laws of optimisers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from zoo.interfaces import ROLES, Weight
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.helpers import assert_equal, randn

_MINIMUM = 4.0


def _weights() -> list[Weight]:
    """Return a weight of every role, with values below the minimum of the loss."""
    return [
        Weight(f"{role}.weight", nn.Parameter(randn(3, 4, seed=index).clamp(-2, 2)), role)
        for index, role in enumerate(ROLES)
    ]


def _loss(weights: Sequence[Weight]) -> Tensor:
    return torch.stack([(weight.tensor - _MINIMUM).square().sum() for weight in weights]).sum() / 2


def _step(optimiser: torch.optim.Optimizer, weights: Sequence[Weight]) -> None:
    optimiser.zero_grad()
    torch.autograd.backward(_loss(weights))
    optimiser.step()


def decreasing_loss(config: Configuration) -> None:
    """One step, and ten steps, decrease the loss of a quadratic function."""
    weights = _weights()
    optimiser = config.build().build(weights)
    before = _loss(weights).item()
    for step in range(1, 11):
        _step(optimiser, weights)
        if step in (1, 10):
            after = _loss(weights).item()
            assert after < before, (
                f"the loss is {after:.6g} after {step} steps, before {before:.6g}"
            )


def updated_weights(config: Configuration) -> None:
    """Each weight is in one group and changes if it has a gradient; without one it does not."""
    weights = _weights()
    optimiser = config.build().build(weights)
    grouped = [id(p) for group in optimiser.param_groups for p in group["params"]]
    assert sorted(grouped) == sorted(id(w.tensor) for w in weights), (
        "the groups do not have each weight once"
    )
    trained, frozen = weights[::2], weights[1::2]
    before = [weight.tensor.detach().clone() for weight in weights]
    for _ in range(3):
        _step(optimiser, trained)
    for weight, old in zip(weights, before, strict=True):
        changed = not torch.equal(weight.tensor, old)
        assert changed or weight in frozen, f"{weight.name} has a gradient, but did not change"
        assert not changed or weight in trained, f"{weight.name} has no gradient, but changed"


def learning_rate(config: Configuration) -> None:
    """The largest learning rate of the groups is `lr`; if all are 0, no weight changes."""
    weights = _weights()
    component = config.build()
    optimiser = component.build(weights)
    rates = [group["lr"] for group in optimiser.param_groups]
    assert max(rates) == component.lr, f"the groups have lr {rates}, declared is {component.lr}"
    _step(optimiser, weights)
    before = [weight.tensor.detach().clone() for weight in weights]
    for group in optimiser.param_groups:
        group["lr"] = 0.0
    _step(optimiser, weights)
    for weight, old in zip(weights, before, strict=True):
        assert_equal(weight.tensor, old, f"{weight.name}, with a learning rate of 0,")


def restored_state(config: Configuration) -> None:
    """The state of each parameter is tensors and JSON values; restored from safetensors and JSON,
    with the groups of a new optimiser, it continues with the same steps, bit for bit."""
    weights = _weights()
    optimiser = config.build().build(weights)
    for _ in range(3):
        _step(optimiser, weights)
    copies = [Weight(w.name, nn.Parameter(w.tensor.detach().clone()), w.role) for w in weights]
    restored = config.build().build(copies)
    groups = restored.state_dict()["param_groups"]
    state = _stored(optimiser.state_dict()["state"])
    restored.load_state_dict({"state": state, "param_groups": groups})
    for _ in range(3):
        _step(optimiser, weights)
        _step(restored, copies)
        for weight, copy in zip(weights, copies, strict=True):
            assert_equal(copy.tensor, weight.tensor, f"{weight.name} of the restored optimiser")


def _stored(state: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the state of a torch optimiser after it was written as safetensors and JSON."""
    entries = list(_entries(state))
    tensors = {key: value for key, value in entries if isinstance(value, Tensor)}
    others = {key: value for key, value in entries if not isinstance(value, Tensor)}
    try:
        text = json.dumps(others, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"the state has other values than tensors and JSON: {error}") from None
    found: dict[int, dict[str, Any]] = {}
    for key, value in {**load(save(tensors)), **json.loads(text)}.items():
        index, _, name = key.partition(".")
        found.setdefault(int(index), {})[name] = value
    return found


def _entries(state: dict[int, dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    for index, values in state.items():
        for name, value in values.items():
            yield f"{index}.{name}", value.contiguous() if isinstance(value, Tensor) else value


LAWS = (
    Law("decreasing-loss", decreasing_loss),
    Law("updated-weights", updated_weights),
    Law("learning-rate", learning_rate),
    Law("restored-state", restored_state),
)
