"""Accelerations that violate a law, and the valid one they are based on."""

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from zoo.interfaces import Call
from zoo.testing.tiny_acceleration import TinyAcceleration, TwoLayers


class OtherArguments(TinyAcceleration):
    def forward(self, target: TwoLayers, x: Tensor, scale: float = 1.0) -> Tensor:
        return super().forward(target, x, scale=scale)


class WrongResult(TinyAcceleration):
    def forward(self, target: TwoLayers, x: Tensor, *, scale: float = 1.0) -> Tensor:
        return super().forward(target, x) + 1e-3


class WrongGradient(TinyAcceleration):
    def forward(self, target: TwoLayers, x: Tensor, *, scale: float = 1.0) -> Tensor:
        return super().forward(target, x.detach(), scale=scale)


class OverwritesItsInput(TinyAcceleration):
    def forward(self, target: TwoLayers, x: Tensor, *, scale: float = 1.0) -> Tensor:
        result = super().forward(target, x, scale=scale)
        x.data.mul_(2)
        return result


class NoCases(TinyAcceleration):
    def cases(self, dtype: object) -> Iterator[Call]:
        yield from ()


class WritesAnAttribute(TinyAcceleration):
    def why_not(self, target: TwoLayers, device: object) -> None:
        target.seen = True  # type: ignore[assignment]


class IgnoresHooks(TinyAcceleration):
    """Declares that it calls the parts, but does not."""

    calls_parts: ClassVar[bool] = True


class ReadsTheDeviceOfAWeight(TinyAcceleration):
    def why_not(self, target: TwoLayers, device: torch.device) -> str | None:
        found = target.first.weight.device.type
        return None if found == device.type else f"the device is '{found}'"


class SkipsCalledParts(TinyAcceleration):
    called_parts: ClassVar[tuple[str, ...]] = ("first",)


# (law, broken component, valid component)
BROKEN = [
    ("reference-conditions", SkipsCalledParts, TinyAcceleration),
    ("same-signature", OtherArguments, TinyAcceleration),
    ("same-results", WrongResult, TinyAcceleration),
    ("same-results", WrongGradient, TinyAcceleration),
    ("unchanged-arguments", OverwritesItsInput, TinyAcceleration),
    ("plain-copies", WritesAnAttribute, TinyAcceleration),
    ("reference-conditions", IgnoresHooks, TinyAcceleration),
    ("given-device", ReadsTheDeviceOfAWeight, TinyAcceleration),
]
