"""Rotary positions in one kernel, or written to their place on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Call, Declined
from zoo_fast.device.triton_support import why_not_triton, why_not_triton_on
from zoo_positions.rotary import Rotary


class FusedRotary(Acceleration):
    """Rotates all pairs of the heads in one kernel, also in the backward pass."""

    name: ClassVar[str] = "fused-rotary"
    serves: ClassVar[type[Rotary]] = Rotary
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.bfloat16)

    def why_not(self, target: Rotary, device: torch.device) -> str | None:
        return why_not_triton_on(device.type)

    def rotate(
        self, target: Rotary, states: Tensor, *, offset: int | Tensor = 0
    ) -> Tensor | Declined:
        reason = why_not_triton(states)
        if reason is None and states.numel() == 0:
            reason = f"the shape is {list(states.shape)}"
        if reason is not None:
            return Declined(reason)
        from zoo_fast.transformer.kernels.rotary import rotate

        cos, sin = target.table.rows(states.shape[2], offset, states)  # [T, d / 2]
        return rotate(states, cos, sin, interleaved=target.layout == "interleaved")

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        return _cases(dtype)


class CpuRotary(Acceleration):
    """Writes both halves of the result to their place, in the memory layout of the states.

    The context of attention then has the layout in which heads are merged without a copy.
    """

    name: ClassVar[str] = "cpu-rotary"
    serves: ClassVar[type[Rotary]] = Rotary

    def why_not(self, target: Rotary, device: torch.device) -> str | None:
        return None if device.type == "cpu" else f"the device is '{device.type}', not 'cpu'"

    def rotate(
        self, target: Rotary, states: Tensor, *, offset: int | Tensor = 0
    ) -> Tensor | Declined:
        if type(states) is not Tensor:  # a subclass may not support arguments `out`
            return Declined(f"the states are a {type(states).__name__}")
        cos, sin = target.table.rows(states.shape[2], offset, states)  # [T, d / 2]
        rotated = torch.empty_like(states)
        if target.dim < target.head_dim:
            rotated[..., target.dim :] = states[..., target.dim :]
        (x, y), (first, second) = (_pairs(target, each) for each in (states, rotated))
        torch.mul(x, cos, out=first).addcmul_(y, sin, value=-1)
        torch.mul(x, sin, out=second).addcmul_(y, cos)
        return rotated

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        return _cases(dtype)


def _pairs(rotary: Rotary, states: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first and second of each pair of dimensions that is rotated."""
    rotated = states[..., : rotary.dim]
    if rotary.layout == "interleaved":
        return rotated[..., 0::2], rotated[..., 1::2]
    x, y = rotated.chunk(2, dim=-1)
    return x, y


def _cases(dtype: torch.dtype) -> Iterator[Call]:
    for rotary, heads, length, offset in (
        (Rotary(head_dim=6), 3, 5, 0),
        (Rotary(head_dim=8, layout="interleaved"), 1, 1, 7),
        (Rotary(head_dim=10, part=0.4), 20, 4, 2),
    ):
        states = torch.randn(2, length, heads, rotary.head_dim).to(dtype).transpose(1, 2)
        yield Call(rotary, (states,), {"offset": offset}, method="rotate")
