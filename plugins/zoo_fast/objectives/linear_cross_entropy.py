"""Cross-entropy of an output layer, computed without keeping the logits.

Notation: N positions, D width, V vocabulary.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from zoo.plugin import full_precision
from zoo_fast.device.triton_support import why_not_triton
from zoo_fast.training.deferred_logits import DeferredLogits, compute_dtype

_MIN_LOGITS = 2**24
"""Number of logits from which the CPU computes them in parts; fewer fit the caches."""
_MIN_VOCABULARY = 1024
_ALIGNMENT = {"cuda": 8, "cpu": 1}
"""The vocabulary is padded to a multiple, for which products are faster on a GPU."""
_CHUNK_BYTES = {"cuda": 2**28, "cpu": 2**24}
"""Largest size of a part of the logits."""


def saves_memory(logits: DeferredLogits) -> bool:
    """Return whether to compute the loss from the parts of the logits."""
    if _device_type(logits.states) == "cuda":
        return logits.shape[-1] >= _MIN_VOCABULARY
    return logits.numel() >= _MIN_LOGITS


def _device_type(tensor: Tensor) -> str:
    """Return the device type; 'cuda' for tensors without values, with which memory is planned."""
    return "cuda" if _is_fake(tensor) else tensor.device.type


def _is_fake(tensor: Tensor) -> bool:
    """Whether a tensor has no values; torch's module is not imported, which takes long."""
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    return fake is not None and isinstance(tensor, fake.FakeTensor)


def linear_cross_entropy(
    logits: DeferredLogits, targets: Tensor, mask: Tensor, *, smoothing: float
) -> Tensor:
    """Compute the mean cross-entropy of the valid targets; 0 if there are none.

    Logits and their gradient are computed for some positions at a time, in the dtype of the output
    layer; softmax and sums are computed in float32. Gradients of states and weight are computed in
    the forward pass, so that the logits are computed once. It cannot be differentiated twice.

    Shapes:
        targets, mask [...]; logits of states [..., D] -> scalar.
    """
    states = logits.states.flatten(0, -2)  # [N, D]
    valid = mask.flatten()
    scale = valid / valid.sum().clamp(min=1)
    loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states,
        logits.weight,
        logits.bias,
        targets.flatten().where(valid, 0),
        full_precision(scale),
        smoothing,
        logits.padding,
        torch.is_grad_enabled(),
        compute_dtype(states),
    )
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        scale: Tensor,
        smoothing: float,
        padding: int | None,
        with_gradients: bool,
        dtype: torch.dtype,
    ) -> Tensor:
        needed = tuple(with_gradients and needs for needs in ctx.needs_input_grad[:3])
        with torch.autocast(states.device.type, enabled=False):
            loss, gradients = _compute(
                states, weight, bias, targets, scale, smoothing, needed, dtype
            )
        if gradients[1] is not None and padding is not None:
            gradients[1][padding] = 0
        ctx.save_for_backward(*gradients)
        ctx.dtypes = [None if t is None else t.dtype for t in (states, weight, bias)]
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradients = [
            None if part is None else _scale(part, grad, dtype)
            for part, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        ]
        return (*gradients, *(None,) * 6)


def _compute(
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    scale: Tensor,
    smoothing: float,
    needed: tuple[bool, ...],
    dtype: torch.dtype,
) -> tuple[Tensor, list[Tensor | None]]:
    """Return the loss and the gradients of states, weight and bias, those that are needed."""
    inputs, matrix = states.to(dtype), _pad_rows(weight, dtype)
    offset = None if bias is None else _pad_rows(bias, dtype)
    N, V = len(inputs), len(weight)
    losses = torch.empty_like(scale)
    rows = _chunk_rows(inputs, len(matrix), summed=needed[1])
    parts = [slice(start, start + rows) for start in range(0, N, rows)] or [slice(0)]
    grad_states = torch.empty_like(inputs) if needed[0] else None
    grad_weight: Tensor | None = None
    grad_bias: Tensor | None = None
    for part in parts:
        # Masked states can be NaN, and 0 * NaN is NaN.
        kept = inputs[part].masked_fill(scale[part, None] == 0, 0)
        logits = torch.nn.functional.linear(kept, matrix, offset)  # [rows, padded V]
        _losses_and_gradient(logits, V, targets[part], scale[part], losses[part], smoothing)
        if grad_states is not None:
            torch.mm(logits, matrix, out=grad_states[part])
        if needed[1]:
            grad_weight = _add_product(grad_weight, logits, kept, len(parts))
        if needed[2]:
            summed = logits.sum(dim=0, dtype=full_precision(logits[:0]).dtype)
            grad_bias = summed if grad_bias is None else grad_bias.add_(summed)
        del logits
    of_vocabulary = [None if part is None else part[:V] for part in (grad_weight, grad_bias)]
    return losses.sum(), [grad_states, *of_vocabulary]


def _pad_rows(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the weight [V, ...] in a dtype, with rows of zeros up to a multiple."""
    extra = -len(weight) % _ALIGNMENT.get(_device_type(weight), 1)
    if not extra:
        return weight.to(dtype)
    padded = weight.new_zeros(len(weight) + extra, *weight.shape[1:], dtype=dtype)
    padded[: len(weight)] = weight
    return padded


def _chunk_rows(inputs: Tensor, V: int, *, summed: bool) -> int:
    """Return the number of positions of a part, so that the parts have nearly equal sizes.

    There is one part if it has no more bytes than the sum [V, D] of the gradients of the weight,
    which would be needed with several parts in half precision.
    """
    N, D = inputs.shape
    max_bytes = _CHUNK_BYTES.get(_device_type(inputs), _CHUNK_BYTES["cpu"])
    if summed and N * inputs.element_size() <= D * 4 and inputs.element_size() < 4:
        return max(1, N)
    parts = max(1, -(-N * V * inputs.element_size() // max_bytes))
    return max(1, -(-N // parts))


def _add_product(total: Tensor | None, logits: Tensor, states: Tensor, parts: int) -> Tensor:
    """Add logits.T @ states [V, D] to the total, in float32 if there are several parts."""
    if parts == 1:
        return logits.T @ states
    if logits.dtype in (torch.float32, torch.float64):
        return logits.T @ states if total is None else total.addmm_(logits.T, states)
    if logits.device.type != "cuda":
        product = (logits.T @ states).float()
        return product if total is None else total.add_(product)
    if total is None:
        return torch.mm(logits.T, states, out_dtype=torch.float32)
    return torch.addmm(total, logits.T, states, out_dtype=torch.float32, out=total)


def _scale(part: Tensor, factor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the part times a scalar, in a dtype."""
    if why_not_triton(part) is not None:
        return torch.mul(part, factor).to(dtype)
    from zoo_fast.objectives.kernels.scale import scale

    return scale(part, factor, dtype)


def _losses_and_gradient(
    logits: Tensor, V: int, targets: Tensor, scale: Tensor, losses: Tensor, smoothing: float
) -> None:
    """Write the scaled losses [N], and replace the logits [N, padded V] by the gradient of their
    sum; that of padding is 0."""
    if _is_fake(logits):
        return  # as the kernel, which works in place
    if why_not_triton(logits) is None:
        from zoo_fast.objectives.kernels.cross_entropy_rows import cross_entropy_rows

        cross_entropy_rows(logits, V, targets, scale, losses, smoothing)
        return
    logprobs = full_precision(logits[:, :V]).log_softmax(dim=-1)
    picked = logprobs.gather(1, targets[:, None])[:, 0]
    mean = (1 - smoothing) * picked
    if smoothing:  # 0 * -inf is NaN
        mean = mean + smoothing / V * logprobs.sum(dim=-1)
    losses.copy_(torch.where(scale > 0, mean * -scale, 0.0))
    gradient = logprobs.exp_().sub_(smoothing / V)
    rows = torch.arange(len(targets), device=targets.device)
    gradient[rows, targets] -= 1 - smoothing
    logits[:, :V] = gradient.mul_(scale[:, None])
    logits[:, V:] = 0
