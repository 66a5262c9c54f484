"""The laws of positions."""

from __future__ import annotations

from zoo.testing.law import Law
from zoo.testing.laws.tensors import noise, same
from zoo.testing.subject import Subject


def offset(subject: Subject) -> None:
    """Positions o..o+n computed alone equal the slice of the whole."""
    position = subject.part()
    given = subject.given()
    states = noise(2, 7, given["dim"])
    heads = noise(2, given["heads"], 7, given["head_dim"])
    same(position.add(states[:, 3:6], offset=3), position.add(states)[:, 3:6], "add at an offset")
    turned = position.rotate(heads)
    same(position.rotate(heads[:, :, 3:6], offset=3), turned[:, :, 3:6], "rotate at an offset")
    device = states.device
    whole = position.bias(7, 7, device=device)
    part = position.bias(3, 7, offset=3, device=device)
    assert (whole is None) == (part is None), "bias comes and goes with the offset"
    if whole is not None and part is not None:
        same(part, whole[:, 3:6], "bias at an offset")


LAWS = (Law("offset", offset),)
