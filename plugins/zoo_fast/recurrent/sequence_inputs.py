"""Inputs of the recurrence over all steps, and the derivatives of its cells.

Notation: B batch, T steps, S source positions, H hidden width, G gates, D width of the queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo_recurrent.cells import GATES

SequenceSettings = tuple[str, str, int]
"""Cell, scorer and first step with attention; see `SequenceInputs`."""


@dataclass
class SequenceInputs:
    """What `decode_sequence` computes from; tensors that are not used are empty.

    Attributes:
        x_gates: terms of the gates that do not depend on the state [B, T, G * H].
        h0: initial state [B, H].
        c0: initial memory cell of an LSTM [B, H].
        W: rows of the query, if it is projected, and recurrent rows of the gates [groups, D + R,
            H]; R is G * H, or 2 * H for 'gru-cho'. The batch is divided into groups of consecutive
            items, each with its own weights.
        b: bias of W [groups, D + R].
        U_n: recurrent rows of the candidate state of 'gru-cho' [groups, H, H].
        b_n: bias of U_n [groups, H].
        keys: prepared keys [B, S, D].
        memory_gates: values multiplied by the input weights of the cell [B, S, G * H]; with W_f,
            by the weights of the contexts in the attentional state [B, S, H].
        v: vector of additive scores [D].
        W_f: input weights of the attentional state tanh(c + W_s h), which the cell reads instead
            of the context c [G * H, H]. W_s are the last H rows of W.
        mask: [B, S], True where a position is attended to.
        cell: recurrent cell.
        scorer: 'additive', 'dot', or 'none' without attention.
        first: index of the first step with attention; the contexts before are zero.
    """

    x_gates: Tensor
    h0: Tensor
    c0: Tensor
    W: Tensor
    b: Tensor
    U_n: Tensor
    b_n: Tensor
    keys: Tensor
    memory_gates: Tensor
    v: Tensor
    W_f: Tensor
    mask: Tensor
    cell: str
    scorer: str
    first: int

    @classmethod
    def of(cls, tensors: Sequence[Tensor], settings: SequenceSettings) -> SequenceInputs:
        """Return the inputs from the tensors, in the order of the attributes."""
        x_gates, h0, c0, W, b, U_n, b_n, keys, memory_gates, v, W_f, mask = tensors
        return cls(x_gates, h0, c0, W, b, U_n, b_n, keys, memory_gates, v, W_f, mask, *settings)

    @property
    def settings(self) -> SequenceSettings:
        return self.cell, self.scorer, self.first

    @property
    def tensors(self) -> list[Tensor]:
        """The floating-point tensors, in the order of the arguments."""
        return [
            self.x_gates,
            self.h0,
            self.c0,
            self.W,
            self.b,
            self.U_n,
            self.b_n,
            self.keys,
            self.memory_gates,
            self.v,
            self.W_f,
        ]

    @property
    def steps(self) -> int:
        return self.x_gates.shape[1]

    @property
    def hidden(self) -> int:
        return self.h0.shape[1]

    @cached_property
    def query_rows(self) -> int:
        """Number of rows of W that project the query; 0 if the query is the state."""
        gates = 2 if self.cell == "gru-cho" else GATES[self.cell]  # type: ignore[index]
        return self.W.shape[1] - (gates + self.feeds) * self.hidden

    @property
    def feeds(self) -> bool:
        """Whether the cell reads attentional states instead of contexts."""
        return self.W_f.numel() > 0

    def attends(self, t: int) -> bool:
        """Whether step t has a context."""
        return self.scorer != "none" and t >= self.first

    def query(self, projected: Tensor, h: Tensor) -> Tensor:
        """Return the queries [..., D], given W h + b [..., D + R] and the states h [..., H]."""
        return projected[..., : self.query_rows] if self.query_rows else h


def grouped_linear(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """Multiply x [B, ..., K] by the weights of each item's group: [B, ..., N].

    Shapes:
        W [groups, N, K], b [groups, N].
    """
    if len(W) == 1:
        return F.linear(x, W[0], b[0])
    flat = x.reshape(len(W), -1, x.shape[-1])
    return torch.baddbmm(b[:, None], flat, W.mT).view(*x.shape[:-1], W.shape[1])


def weight_gradients(grad: Tensor, x: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Compute the gradients of W and b of `grouped_linear`, given that of its result."""
    grad = grad.reshape(groups, -1, grad.shape[-1])
    # On a GPU, `sum` would allocate twice the memory of the gradient.
    sums = torch.bmm(grad.new_ones(groups, 1, grad.shape[1]), grad)[:, 0]
    return torch.bmm(grad.mT, x.reshape(groups, -1, x.shape[-1])), sums


class Derivatives(NamedTuple):
    """Factors of the gradient of a step, [B, T, ...], from the activations of all steps.

    The gradient of the gates is the gradient of the new state times ``x``; that of the recurrent
    term of the candidate of a GRU is the gradient of the new state times ``h``; that of the
    previous state contains the gradient of the new one times ``direct``. For an LSTM the first
    three gates use the gradient of the memory cell, to which the state contributes the factor
    ``to_cell``, and which is multiplied by ``direct`` from step to step. For 'gru-cho', ``x``
    contains the factors of the update gate and the candidate; the gradient of r * h is multiplied
    by ``reset`` and, for the previous state, by ``gate``.
    """

    x: Tensor
    h: Tensor
    direct: Tensor
    to_cell: Tensor
    gate: Tensor
    reset: Tensor


def derivatives(
    inputs: SequenceInputs, gates: Tensor, recurrent: Tensor, hs: Tensor, cs: Tensor
) -> Derivatives:
    """Compute the factors from the gates' input terms and recurrent terms [B, T, G * H]."""
    H, cell = inputs.hidden, inputs.cell
    dtype = torch.promote_types(gates.dtype, torch.float32)
    gates, recurrent, hs, cs = (tensor.to(dtype) for tensor in (gates, recurrent, hs, cs))
    h_before, h, none = hs[:, :-1], hs[:, 1:], hs.new_empty(0)
    if cell == "rnn":
        return Derivatives(1 - h * h, none, none, none, none, none)
    if cell == "lstm":
        i, f, g, o = (gates + recurrent).chunk(4, dim=-1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = cs[:, 1:].tanh()
        factors = (g * i * (1 - i), cs[:, :-1] * f * (1 - f), i * (1 - g * g), c * o * (1 - o))
        return Derivatives(torch.cat(factors, dim=-1), none, f, o * (1 - c * c), none, none)
    r, z = (gates[..., : 2 * H] + recurrent[..., : 2 * H]).sigmoid_().chunk(2, dim=-1)
    if cell == "gru":
        u = recurrent[..., 2 * H :]
        n = torch.addcmul(gates[..., 2 * H :], r, u).tanh_()
        d_n = (1 - z) * (1 - n * n)
        d_z = (h_before - n) * z * (1 - z)
        d_r = d_n * u * r * (1 - r)
        x = torch.cat((d_r, d_z, d_n), dim=-1)
        return Derivatives(x, d_n * r, z, none, none, none)
    u = grouped_linear(r * h_before, inputs.U_n.to(dtype), inputs.b_n.to(dtype))
    n = u.add_(gates[..., 2 * H :]).tanh_()
    x = torch.cat(((h_before - n) * z * (1 - z), (1 - z) * (1 - n * n)), dim=-1)
    return Derivatives(x, none, z, none, r, h_before * r * (1 - r))
