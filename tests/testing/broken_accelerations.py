"""Accelerations that violate a law, and the valid one they are based on."""

from typing import ClassVar

from torch import Tensor

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


class WritesAnAttribute(TinyAcceleration):
    def why_not(self, target: TwoLayers, device: object) -> None:
        target.seen = True  # type: ignore[assignment]


class IgnoresHooks(TinyAcceleration):
    """Declares that it calls the parts, but does not."""

    calls_parts: ClassVar[bool] = True


# (law, broken component, valid component)
BROKEN = [
    ("same-signature", OtherArguments, TinyAcceleration),
    ("same-results", WrongResult, TinyAcceleration),
    ("same-results", WrongGradient, TinyAcceleration),
    ("plain-copies", WritesAnAttribute, TinyAcceleration),
    ("reference-conditions", IgnoresHooks, TinyAcceleration),
]
