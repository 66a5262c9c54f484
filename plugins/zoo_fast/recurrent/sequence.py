"""Recurrent decoding of all steps as one operator, with attention or without.

The operator has its own gradient, so torch.compile does not unroll the loop. It is differentiable
once.

Notation: see `SequenceInputs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from zoo_fast.device.triton_support import why_not_triton
from zoo_fast.recurrent.captured import run_captured
from zoo_fast.recurrent.sequence_inputs import SequenceInputs, SequenceSettings
from zoo_fast.recurrent.sequence_loop import Result, Steps, empty_result, run_backward, run_forward
from zoo_fast.recurrent.sequence_steps import TorchSteps


@torch.library.custom_op("zoo_recurrent::decode_sequence", mutates_args=())
def _decode(tensors: Sequence[Tensor], mask: Tensor, cell: str, scorer: str, first: int) -> Result:
    hs, cs, weights = run_captured(_run, [*tensors, mask], (cell, scorer, first))
    return hs, cs, weights


def _run(tensors: Sequence[Tensor], settings: SequenceSettings) -> list[Tensor]:
    inputs = SequenceInputs.of(tensors, settings)
    wide, steps = _select_steps(inputs)
    return [output.to(inputs.h0.dtype) for output in run_forward(wide, steps)]


@_decode.register_fake
def _(tensors: Sequence[Tensor], mask: Tensor, cell: str, scorer: str, first: int) -> Result:
    return empty_result(SequenceInputs.of([*tensors, mask], (cell, scorer, first)))


@torch.library.custom_op("zoo_recurrent::decode_sequence_backward", mutates_args=())
def _decode_backward(
    tensors: Sequence[Tensor],
    mask: Tensor,
    cell: str,
    scorer: str,
    first: int,
    result: Sequence[Tensor],
    gradients: Sequence[Tensor],
) -> list[Tensor]:
    every = [*tensors, mask, *result, *gradients]
    return run_captured(_run_backward, every, (cell, scorer, first))


def _run_backward(tensors: Sequence[Tensor], settings: SequenceSettings) -> list[Tensor]:
    *given, hs, cs, weights, grad_hs, grad_cs, grad_weights = tensors
    inputs = SequenceInputs.of(given, settings)
    wide, steps = _select_steps(inputs)
    dtype = wide.h0.dtype
    saved = (hs.to(dtype), cs.to(dtype), weights.to(dtype))
    gradients = (
        grad_hs.to(dtype).contiguous(),
        grad_cs.to(dtype).contiguous(),
        grad_weights.to(dtype).contiguous(),
    )
    return [grad.to(inputs.h0.dtype) for grad in run_backward(wide, steps, saved, gradients)]


@_decode_backward.register_fake
def _(
    tensors: Sequence[Tensor],
    mask: Tensor,
    cell: str,
    scorer: str,
    first: int,
    result: Sequence[Tensor],
    gradients: Sequence[Tensor],
) -> list[Tensor]:
    return [torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in tensors]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Result) -> None:
    tensors, mask, ctx.cell, ctx.scorer, ctx.first = inputs
    ctx.count = len(tensors)
    ctx.save_for_backward(*tensors, mask, *output)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
    saved = ctx.saved_tensors
    tensors, mask, result = saved[: ctx.count], saved[ctx.count], saved[ctx.count + 1 :]
    given = [
        torch.zeros_like(tensor) if grad is None else grad
        for tensor, grad in zip(result, gradients, strict=True)
    ]
    grads = _decode_backward(
        list(tensors), mask, ctx.cell, ctx.scorer, ctx.first, list(result), given
    )
    return grads, None, None, None, None


_decode.register_autograd(_backward, setup_context=_setup_context)


def decode_sequence(inputs: SequenceInputs) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the states, memory cells and attention weights of all steps.

    All tensors are converted to the dtype of ``x_gates``.
    """
    tensors = [tensor.to(inputs.x_gates.dtype) for tensor in inputs.tensors]
    hs, cs, weights = _decode(tensors, inputs.mask, *inputs.settings)
    return hs, cs, weights


def _select_steps(inputs: SequenceInputs) -> tuple[SequenceInputs, Steps]:
    """Return the steps for the device, and the inputs in the dtype in which they compute."""
    kind: type[TorchSteps] = TorchSteps
    dtype = torch.promote_types(inputs.h0.dtype, torch.float32)
    triton = inputs.x_gates.numel() > 0 and not inputs.feeds
    if triton and why_not_triton(*inputs.tensors) is None:
        from zoo_fast.recurrent.kernels.triton_steps import MAX_SOURCE, TritonSteps

        if inputs.mask.shape[1] <= MAX_SOURCE:
            kind, dtype = TritonSteps, inputs.h0.dtype
    tensors = [tensor.to(dtype).contiguous() for tensor in inputs.tensors]
    inputs = SequenceInputs.of([*tensors, inputs.mask.contiguous()], inputs.settings)
    return inputs, kind(inputs)
