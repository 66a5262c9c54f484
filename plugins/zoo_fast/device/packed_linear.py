"""Linear layers with packed weights, for repeated calls with few rows on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SMALLEST = 2**19
"""Number of elements from which a weight is packed."""
MAX_BYTES = 2**30
"""Size of the weights that are packed together."""
_MIN_ROWS, _MIN_CALLS = 8, 16
"""Packing takes as long as two to eight calls; with fewer rows, it repays from this number of calls
on."""
_ACTIVE = threading.local()

Layers = tuple[tuple[Tensor, Tensor | None], ...]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute `torch.nn.functional.linear`, with packed weights inside `PackedWeights.use`."""
    packed = packed_weights()
    if packed is None or weight.numel() < SMALLEST:
        return F.linear(x, weight, bias)
    return packed.linear(x, (weight, bias))


def why_not_packed(weight: Tensor, device: torch.device) -> str | None:
    """Return the reason why `linear` does not use packed weights, or None."""
    if device.type != "cpu":
        return f"the device is '{device.type}', not 'cpu'"
    if weight.numel() < SMALLEST:
        return f"the weight has less than {SMALLEST:,} elements"
    return None if packed_weights() else "weights are packed in decoding loops only"


def packed_weights() -> PackedWeights | None:
    """Return the packed weights in use; None outside `PackedWeights.use`."""
    active: PackedWeights | None = getattr(_ACTIVE, "weights", None)
    return active


class PackedWeights:
    """Weights in the layout of oneDNN's kernel, which is faster for few rows.

    Weights are packed when they are used for the second time, and again after a change. This takes
    as much memory as the weights until the object is deleted, and as long as some calls, so it is
    not done for few calls with few rows. From ``MAX_BYTES`` on, further weights are not packed, and
    neither are those that are computed at each access, as by parametrizations of torch.

    Args:
        rows: number of rows of most calls.
        calls: number of calls.
    """

    def __init__(self, *, rows: int = _MIN_ROWS, calls: int = _MIN_CALLS) -> None:
        self._repays = rows >= _MIN_ROWS or calls >= _MIN_CALLS
        self._groups: dict[tuple[int, ...], _Group] = {}
        self._bytes = 0

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use these weights in the calls of `linear` of this thread inside the block.

        Without effect while gradients or autocast are enabled, or if there is no such kernel.
        """
        before = getattr(_ACTIVE, "weights", None)
        _ACTIVE.weights = self if _is_supported() else None
        try:
            yield
        finally:
            _ACTIVE.weights = before

    def linear(self, x: Tensor, *layers: tuple[Tensor, Tensor | None]) -> Tensor:
        """Compute x W^T + b of layers (W, b) with the same input; the outputs are concatenated."""
        key = tuple([id(part) for layer in layers for part in layer])
        group = self._groups.get(key)
        if group is not None:
            return group.linear(x)
        if any(part is not None and type(part) is not nn.Parameter for part in chain(*layers)):
            return _plain(x, layers)  # a new tensor at each access
        group = self._groups[key] = _Group(layers)
        self._bytes += group.bytes
        group.can_pack = group.can_pack and self._repays and self._bytes <= MAX_BYTES
        return _plain(x, layers)


def _plain(x: Tensor, layers: Layers) -> Tensor:
    outputs = [F.linear(x, weight, bias) for weight, bias in layers]
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=-1)


class _Group:
    """Layers with the same input, and their packed weight."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._versions: list[int] = []
        self._weight = torch.empty(0, device="cpu")
        self._bias: Tensor | None = None
        self.bytes = sum(weight.nbytes for weight, _ in layers)
        self.can_pack = all(part is None or _can_pack(part) for part in chain(*layers))

    def linear(self, x: Tensor) -> Tensor:
        rows = x.numel() // x.shape[-1]
        if rows == 1 or not self.can_pack or x.dtype != torch.float32:
            return _plain(x, self._layers)
        versions = [part._version for layer in self._layers for part in layer if part is not None]
        if versions != self._versions:
            self._versions = versions
            # Packed weights of inference mode could not be used outside of it.
            with torch.inference_mode(False), torch.no_grad():
                self._pack(rows)
        output: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self._weight, self._bias, "none", [], ""
        )
        return output

    def _pack(self, rows: int) -> None:
        weights = [weight.detach() for weight, _ in self._layers]
        biases = [
            weight.new_zeros(len(weight)) if bias is None else bias.detach()
            for weight, bias in self._layers
        ]
        joint = weights[0] if len(weights) == 1 else torch.cat(weights)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(joint, rows)
        has_bias = any(bias is not None for _, bias in self._layers)
        self._bias = torch.cat(biases) if has_bias else None


def _can_pack(part: Tensor) -> bool:
    # Changes of tensors of inference mode cannot be detected: they have no version.
    is_packable = part.dtype == torch.float32 and part.device.type == "cpu"
    return is_packable and part.is_contiguous() and not part.is_inference()


def _is_supported() -> bool:
    has_kernel = torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return (
        has_kernel
        and bool(torch.backends.mkldnn.enabled)
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
    )
