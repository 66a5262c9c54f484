"""Linear layers with packed weights, for repeated calls with few rows on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SMALLEST = 2**19
"""Number of elements from which a weight is packed."""
_ACTIVE = threading.local()


class Linear(nn.Linear):
    """A `torch.nn.Linear` that calls `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute `torch.nn.functional.linear`, with packed weights inside `PackedWeights.use`."""
    if not torch.compiler.is_compiling():
        packed: PackedWeights | None = getattr(_ACTIVE, "weights", None)
        if packed is not None and _is_supported(x, weight, bias):
            return packed.linear(x, weight, bias)
    return F.linear(x, weight, bias)


class PackedWeights:
    """Weights in the layout of oneDNN's kernel, which is faster for 2 to 64 rows.

    A weight is packed when it is first used, and again if it has changed. This takes about as long
    as two calls and as much memory as the weight, until the object is deleted.
    """

    def __init__(self) -> None:
        self._packed: dict[int, tuple[Tensor, int, Tensor]] = {}

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use these weights in the calls of `linear` of this thread inside the block."""
        before = getattr(_ACTIVE, "weights", None)
        _ACTIVE.weights = self
        try:
            yield
        finally:
            _ACTIVE.weights = before

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute x W^T + b with the packed weight."""
        kept = self._packed.get(id(weight))
        if kept is None or kept[1] != weight._version:
            rows = x.numel() // x.shape[-1]
            packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), rows)
            kept = self._packed[id(weight)] = (weight, weight._version, packed)
        output: Tensor = torch.ops.mkldnn._linear_pointwise(x, kept[2], bias, "none", [], "")
        return output


def _is_supported(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether the kernel exists and is faster: in float32, without gradients, for several rows."""
    return (
        weight.numel() >= SMALLEST
        and x.numel() > x.shape[-1]
        and x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and (bias is None or bias.dtype == torch.float32)
        and weight.is_contiguous()
        and not weight.is_inference()
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and torch.backends.mkldnn.is_available()
        and torch.backends.mkldnn.enabled
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
