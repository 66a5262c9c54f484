"""The recurrence over all steps, and its gradient.

Only what depends on the previous state is computed in the loop. Forward, a step multiplies the
state by W, attends, and computes the cell. The gradient needs the states and weights; all other
activations are computed again, and the gradients of the weights, for all steps at once.

Notation: see `SequenceInputs`.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from zoo_fast.recurrent.sequence_inputs import (
    Derivatives,
    SequenceInputs,
    grouped_linear,
    weight_gradients,
)

Result = tuple[Tensor, Tensor, Tensor]
"""States [B, T + 1, H], memory cells [B, T + 1, H] of an LSTM, and weights [B, T, S]."""
Gradients = tuple[Tensor, Tensor, Tensor]
"""Gradients of states, memory cells and weights."""


class Steps(Protocol):
    """The computations of one step; see `TorchSteps`."""

    def project(self, h: Tensor, row: Tensor) -> None: ...

    def unproject(self, before: Tensor, d_row: Tensor) -> Tensor: ...

    def finish(self, dh: Tensor) -> Tensor: ...

    def attend(self, q: Tensor, weights: Tensor) -> None: ...

    def advance(
        self, t: int, weights: Tensor | None, recurrent: Tensor, hs: Tensor, cs: Tensor
    ) -> None: ...

    def derivatives(
        self, gates: Tensor, recurrent: Tensor, hs: Tensor, cs: Tensor
    ) -> Derivatives: ...

    def backward_cell(
        self,
        t: int,
        factors: Derivatives,
        dh: Tensor,
        dc: Tensor,
        grad_h: Tensor,
        grad_c: Tensor,
        dx: Tensor,
        dr: Tensor,
    ) -> tuple[Tensor, Tensor]: ...

    def backward_attend(
        self, q: Tensor, weights: Tensor, grad_weights: Tensor, dx: Tensor, dq: Tensor, ds: Tensor
    ) -> None: ...

    def additive_gradients(self, q: Tensor, ds: Tensor) -> tuple[Tensor, Tensor]: ...


def empty_result(inputs: SequenceInputs) -> Result:
    """Allocate the outputs."""
    (B, T), (H, S) = inputs.x_gates.shape[:2], (inputs.hidden, inputs.mask.shape[1])
    hs = inputs.h0.new_empty(B, T + 1, H)
    cs = hs.new_empty(hs.shape if inputs.cell == "lstm" else 0)
    weights = hs.new_empty((B, T, S) if inputs.scorer != "none" else 0)
    return hs, cs, weights


def run_forward(inputs: SequenceInputs, steps: Steps) -> Result:
    """Compute all states."""
    hs, cs, weights = empty_result(inputs)
    hs[:, 0] = inputs.h0
    if cs.numel():
        cs[:, 0] = inputs.c0
    if inputs.scorer != "none" and inputs.first:
        weights[:, : inputs.first] = 0
    D, row = inputs.query_rows, hs.new_empty(len(hs), inputs.W.shape[1])
    for t in range(inputs.steps):
        steps.project(hs[:, t], row)
        attended = weights[:, t] if inputs.attends(t) else None
        if attended is not None:
            steps.attend(inputs.query(row, hs[:, t]), attended)
        steps.advance(t, attended, row[:, D:], hs, cs)
    return hs, cs, weights


def run_backward(
    inputs: SequenceInputs, steps: Steps, result: Result, gradients: Gradients
) -> list[Tensor]:
    """Compute the gradients of the tensors of the inputs, given those of the result."""
    (hs, cs, weights), (grad_hs, grad_cs, grad_weights) = result, gradients
    D, attends = inputs.query_rows, inputs.scorer != "none"
    every = grouped_linear(hs, inputs.W, inputs.b)  # W h + b [B, T + 1, D + R]
    h_before, projected = hs[:, :-1], every[:, :-1]
    q = projected[..., :D].contiguous() if D else h_before
    R = projected.shape[-1] - (inputs.hidden if inputs.feeds else 0)
    gates, fed = inputs.x_gates, inputs.W_f
    if inputs.feeds:
        fed = torch.baddbmm(projected[..., R:], weights, inputs.memory_gates).tanh_()
        fed[:, : inputs.first] = 0
        gates = gates + fed @ inputs.W_f.T
    elif attends:
        gates = torch.baddbmm(gates, weights, inputs.memory_gates)
    factors = steps.derivatives(gates, projected[..., D:R], hs, cs)
    del gates
    # The gradients of the projections replace them.
    every[:, -1] = 0
    dx, d_projected = torch.empty_like(inputs.x_gates), projected
    ds = torch.zeros_like(weights)
    dq = d_projected[..., :D] if D else torch.empty_like(h_before)
    if inputs.first:
        dq[:, : inputs.first] = 0
    dh, dc = grad_hs[:, -1], grad_cs[:, -1] if cs.numel() else torch.empty_like(cs)
    for t in reversed(range(inputs.steps)):
        grad_h, grad_c = grad_hs[:, t], grad_cs[:, t] if cs.numel() else dc
        before, dc = steps.backward_cell(
            t, factors, dh, dc, grad_h, grad_c, dx[:, t], d_projected[:, t, D:R]
        )
        d_context = dx[:, t]
        if inputs.feeds:
            d_context = d_projected[:, t, R:]
            torch.mul(dx[:, t] @ inputs.W_f, 1 - fed[:, t].square(), out=d_context)
        if inputs.attends(t):
            steps.backward_attend(
                q[:, t], weights[:, t], grad_weights[:, t], d_context, dq[:, t], ds[:, t]
            )
            if not D:
                before = before + dq[:, t]
        elif inputs.feeds:
            d_context.zero_()
        dh = steps.unproject(before, d_projected[:, t])
    groups, gate = len(inputs.W), factors.gate
    del factors
    grad_W, grad_b = weight_gradients(every, hs, groups)
    grad_U_n, grad_b_n = torch.zeros_like(inputs.U_n), torch.zeros_like(inputs.b_n)
    if inputs.cell == "gru-cho":
        d_n = dx[..., 2 * inputs.hidden :]
        grad_U_n, grad_b_n = weight_gradients(d_n, (gate * h_before).to(d_n), groups)
    d_contexts, grad_W_f = dx, torch.zeros_like(inputs.W_f)
    if inputs.feeds:
        d_contexts = d_projected[..., R:]
        grad_W_f = dx.flatten(0, 1).T @ fed.flatten(0, 1)
    del every, projected, d_projected, dq
    keys, memory_gates, v = _source_gradients(inputs, steps, q, weights, d_contexts, ds)
    return [
        dx,
        steps.finish(dh),
        dc,
        grad_W,
        grad_b,
        grad_U_n,
        grad_b_n,
        keys,
        memory_gates,
        v,
        grad_W_f,
    ]


def _source_gradients(
    inputs: SequenceInputs,
    steps: Steps,
    q: Tensor,
    weights: Tensor,
    d_contexts: Tensor,
    ds: Tensor,
) -> list[Tensor]:
    """Compute the gradients of keys, memory_gates and v from all steps at once."""
    if inputs.scorer == "none":
        return [torch.zeros_like(t) for t in (inputs.keys, inputs.memory_gates, inputs.v)]
    grad_memory_gates = torch.bmm(weights.mT, d_contexts)
    if inputs.scorer == "dot":
        return [torch.bmm(ds.mT, q), grad_memory_gates, torch.zeros_like(inputs.v)]
    grad_keys, grad_v = steps.additive_gradients(q, ds)
    return [grad_keys, grad_memory_gates, grad_v]
