"""Laws of position encodings."""

from __future__ import annotations

import torch

from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.helpers import assert_close, randn


def offset(config: Configuration) -> None:
    """Positions computed from an offset equal a slice of those computed from 0."""
    position = config.build()
    parent_values = config.parent_values()
    states = randn(2, 7, parent_values["dim"])
    heads = randn(2, parent_values["heads"], 7, parent_values["head_dim"])
    assert_close(
        position.add(states[:, 3:6], offset=3), position.add(states)[:, 3:6], "add at an offset"
    )
    rotated = position.rotate(heads)
    assert_close(
        position.rotate(heads[:, :, 3:6], offset=3), rotated[:, :, 3:6], "rotate at an offset"
    )
    device = states.device
    full = position.bias(7, 7, device=device)
    part = position.bias(3, 7, offset=3, device=device)
    assert (full is None) == (part is None), "whether there is a bias depends on the offset"
    if full is not None and part is not None:
        assert_close(part, full[:, 3:6], "bias at an offset")


def restarted_positions(config: Configuration) -> None:
    """With an offset of each state, `add` restarts the positions inside of a row."""
    position = config.build()
    states = randn(2, 7, config.parent_values()["dim"])
    offsets = torch.tensor([[0, 0, 0, -3, -3, -3, -3], [0, -1, -1, -1, -1, -1, -6]])
    expected = torch.stack(
        [
            torch.cat([position.add(part[None])[0] for part in row.split(sizes)])
            for row, sizes in zip(states, ([3, 4], [1, 5, 1]), strict=True)
        ]
    )
    assert_close(position.add(states, offset=offsets), expected, "add with restarted positions")


LAWS = (Law("offset", offset), Law("restarted-positions", restarted_positions))
