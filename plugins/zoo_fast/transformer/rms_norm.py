"""RMSNorm by the operator of torch, which is one kernel on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.plugin import Acceleration, Call, Declined
from zoo_transformer.norm import RMSNorm


class TorchRMSNorm(Acceleration):
    """Calls torch's ``rms_norm``, which rounds once, after the product with the weight."""

    name: ClassVar[str] = "torch-rms-norm"
    serves: ClassVar[type[RMSNorm]] = RMSNorm
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    traceable: ClassVar[bool] = True
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.bfloat16)

    def why_not(self, target: RMSNorm, device: torch.device) -> str | None:
        return "torch has no kernel for the CPU" if device.type == "cpu" else None

    def forward(self, target: RMSNorm, x: Tensor) -> Tensor | Declined:
        if x.dtype != target.weight.dtype:
            return Declined(f"the input is {x.dtype}, and the weight {target.weight.dtype}")
        return F.rms_norm(x, (target.width,), target.weight, target.eps)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        for width, shape in ((6, (2, 3)), (1, (4,)), (64, (1, 1))):
            norm = RMSNorm(width, 1e-5).to(dtype)
            yield Call(norm, (torch.randn(*shape, width).to(dtype),))
