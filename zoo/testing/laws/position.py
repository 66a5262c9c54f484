"""The laws of positions."""

from __future__ import annotations

from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.helpers import assert_close, randn


def offset(config: Configuration) -> None:
    """Positions o..o+n computed alone equal the slice of the whole."""
    position = config.build()
    parent_values = config.parent_values()
    states = randn(2, 7, parent_values["dim"])
    heads = randn(2, parent_values["heads"], 7, parent_values["head_dim"])
    assert_close(
        position.add(states[:, 3:6], offset=3), position.add(states)[:, 3:6], "add at an offset"
    )
    turned = position.rotate(heads)
    assert_close(
        position.rotate(heads[:, :, 3:6], offset=3), turned[:, :, 3:6], "rotate at an offset"
    )
    device = states.device
    whole = position.bias(7, 7, device=device)
    part = position.bias(3, 7, offset=3, device=device)
    assert (whole is None) == (part is None), "bias comes and goes with the offset"
    if whole is not None and part is not None:
        assert_close(part, whole[:, 3:6], "bias at an offset")


LAWS = (Law("offset", offset),)
