"""Steps of recurrent cells as linear layers with repeated weights, and the rest of the cell.

Notation: B batch, H hidden width, G gates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from zoo_fast.training.repeated_linear import can_repeat, repeated_linear
from zoo_fast.training.weight_products import WeightProducts

_aten = torch.ops.aten


def _lstm_cell(
    products: WeightProducts,
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor] | None:
    h, c = hx
    if not (can_repeat(input, w_ih, b_ih) and can_repeat(h, w_hh, b_hh)):
        return None
    fused = _is_fused(input)
    x_gates = repeated_linear(products, input, w_ih, b_ih, is_added=not fused)
    h_gates = repeated_linear(products, h, w_hh, b_hh, is_added=not fused)
    if fused:
        h, c = _FusedLSTM.apply(x_gates, h_gates, c, b_ih, b_hh)  # type: ignore[no-untyped-call]
        return h, c
    i, f, g, o = (x_gates + h_gates).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_cell(
    products: WeightProducts,
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor | None:
    if not (can_repeat(input, w_ih, b_ih) and can_repeat(hx, w_hh, b_hh)):
        return None
    fused = _is_fused(input)
    x_gates = repeated_linear(products, input, w_ih, b_ih, is_added=not fused)
    h_gates = repeated_linear(products, hx, w_hh, b_hh, is_added=not fused)
    if fused:
        h: Tensor = _FusedGRU.apply(x_gates, h_gates, hx, b_ih, b_hh)  # type: ignore[no-untyped-call]
        return h
    (x_r, x_z, x_n), (h_r, h_z, h_n) = x_gates.chunk(3, dim=-1), h_gates.chunk(3, dim=-1)
    n = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
    return n + (x_z + h_z).sigmoid() * (hx - n)


def _rnn_tanh_cell(
    products: WeightProducts,
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor | None:
    if not (can_repeat(input, w_ih, b_ih) and can_repeat(hx, w_hh, b_hh)):
        return None
    x_term = repeated_linear(products, input, w_ih, b_ih)
    return (x_term + repeated_linear(products, hx, w_hh, b_hh)).tanh()


CELLS: Mapping[Any, Callable[..., Any]] = {
    torch.lstm_cell: _lstm_cell,
    torch.gru_cell: _gru_cell,
    torch.rnn_tanh_cell: _rnn_tanh_cell,
}
"""For each function of torch, one that has the products as first argument, and returns None if a
weight cannot be repeated."""


def _is_fused(inputs: Tensor) -> bool:
    """Whether torch has kernels of the cells without their products."""
    return inputs.is_cuda


class _FusedLSTM(torch.autograd.Function):
    """The cell of an LSTM, given the products of its gates [B, 4 H]; biases have no gradient here,
    so that they are not summed at every step."""

    @staticmethod
    def forward(
        ctx: Any,
        x_gates: Tensor,
        h_gates: Tensor,
        c: Tensor,
        b_ih: Tensor | None,
        b_hh: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        h, updated, gates = _aten._thnn_fused_lstm_cell(x_gates, h_gates, c, b_ih, b_hh)
        ctx.save_for_backward(c, updated, gates)
        ctx.set_materialize_grads(False)
        return h, updated

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dh: Tensor | None, dc: Tensor | None) -> tuple[Tensor | None, ...]:
        c, updated, gates = ctx.saved_tensors
        d_gates, d_before, _ = _aten._thnn_fused_lstm_cell_backward_impl(
            dh, dc, c, updated, gates, False
        )
        return d_gates, d_gates, d_before, None, None


class _FusedGRU(torch.autograd.Function):
    """The cell of a GRU, given the products of its gates [B, 3 H]; see `_FusedLSTM`."""

    @staticmethod
    def forward(
        ctx: Any,
        x_gates: Tensor,
        h_gates: Tensor,
        h: Tensor,
        b_ih: Tensor | None,
        b_hh: Tensor | None,
    ) -> Tensor:
        updated, workspace = _aten._thnn_fused_gru_cell(x_gates, h_gates, h, b_ih, b_hh)
        ctx.save_for_backward(workspace)
        result: Tensor = updated
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        (workspace,) = ctx.saved_tensors
        dx, d_recurrent, d_before, *_ = _aten._thnn_fused_gru_cell_backward(
            dh.contiguous(), workspace, False
        )
        return dx, d_recurrent, d_before, None, None
