"""Rotary positions in one kernel."""

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
        for rotary, heads, length, offset in (
            (Rotary(head_dim=6), 3, 5, 0),
            (Rotary(head_dim=8, layout="interleaved"), 1, 1, 7),
            (Rotary(head_dim=10, part=0.4), 20, 4, 2),
        ):
            states = torch.randn(2, length, heads, rotary.head_dim).to(dtype).transpose(1, 2)
            yield Call(rotary, (states,), {"offset": offset}, method="rotate")
