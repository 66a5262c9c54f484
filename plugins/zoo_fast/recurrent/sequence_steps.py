"""One step of the recurrence and of its gradient, in torch operations.

Notation: see `SequenceInputs`.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from zoo_fast.recurrent.sequence_inputs import (
    Derivatives,
    SequenceInputs,
    derivatives,
    grouped_linear,
)

LOWEST = -1e30
LARGEST = 40.0
"""Limit of absolute values before the exponential."""
SATURATED = 20.0
"""Absolute value from which tanh is ±1."""


class TorchSteps:
    """Steps of the recurrence on any device.

    On the CPU, additive scores use tanh(a + b) = 1 - 2 r with r = 1 / (1 + e^{2a} e^{2b}), and
    tanh' = 4 r (1 - r), so that the exponentials of the keys are computed once. It is exact if the
    keys are at most SATURATED. The constant term does not change the weights.
    """

    def __init__(self, inputs: SequenceInputs) -> None:
        self.inputs = inputs

    @cached_property
    def exp_keys(self) -> Tensor | None:
        """The exponential of the keys, if r is used instead of tanh."""
        keys = self.inputs.keys
        if keys.device.type != "cpu" or float(keys.abs().amax()) > SATURATED:
            return None
        return (2 * keys).exp_()

    @cached_property
    def masked(self) -> tuple[Tensor, Tensor]:
        """The masked positions [B, S], and which items have others [B, 1]."""
        return ~self.inputs.mask, self.inputs.mask.any(dim=1, keepdim=True)

    @cached_property
    def gradients(self) -> tuple[Tensor, Tensor]:
        """The sums of the gradients of keys and v."""
        return torch.zeros_like(self.inputs.keys), torch.zeros_like(self.inputs.v)

    @cached_property
    def W_T(self) -> Tensor:
        return self.inputs.W.mT.contiguous()

    def project(self, h: Tensor, row: Tensor) -> None:
        """Compute W h + b [B, D + R] of states h [B, H]."""
        inputs = self.inputs
        if len(inputs.W) == 1:
            torch.addmm(inputs.b[0], h, self.W_T[0], out=row)
        else:
            row.copy_(grouped_linear(h, inputs.W, inputs.b))

    def unproject(self, before: Tensor, d_row: Tensor) -> Tensor:
        """Add the gradient of h that passes through W to the other part ``before`` [B, H]."""
        W = self.inputs.W
        if len(W) == 1:
            return torch.addmm(before, d_row, W[0])
        groups = [part.reshape(len(W), -1, part.shape[1]) for part in (before, d_row)]
        return torch.baddbmm(groups[0], groups[1], W).view_as(before)

    def finish(self, dh: Tensor) -> Tensor:
        """Return the gradient of the first state, given the last result of `unproject`."""
        return dh

    def attend(self, q: Tensor, weights: Tensor) -> None:
        """Compute the attention weights [B, S] of the queries q [B, D]."""
        inputs = self.inputs
        if inputs.scorer == "additive":
            scores = (self._activation(q) @ inputs.v).mul_(self._tanh_factor)
        else:
            scores = torch.bmm(inputs.keys, q[..., None])[..., 0]
        masked, has_keys = self.masked
        scores = scores.masked_fill_(masked, LOWEST).softmax(dim=-1)
        torch.mul(scores, has_keys, out=weights)

    def advance(
        self, t: int, weights: Tensor | None, recurrent: Tensor, hs: Tensor, cs: Tensor
    ) -> None:
        """Compute the state t + 1 from the weights [B, S] and the recurrent terms [B, R]."""
        inputs, H = self.inputs, self.inputs.hidden
        gates = inputs.x_gates[:, t]
        if weights is not None:
            context = torch.bmm(weights[:, None], inputs.memory_gates)[:, 0]
            if inputs.feeds:
                context = context.add_(recurrent[:, -H:]).tanh_() @ inputs.W_f.T
            gates = gates + context
        if inputs.feeds:
            recurrent = recurrent[:, :-H]
        self.advance_cell(t, gates, recurrent, hs, cs)

    def advance_cell(
        self, t: int, gates: Tensor, recurrent: Tensor, hs: Tensor, cs: Tensor
    ) -> None:
        """Compute the state t + 1 from the input terms [B, G * H] and the recurrent terms."""
        inputs, H = self.inputs, self.inputs.hidden
        h, after = hs[:, t], hs[:, t + 1]
        if inputs.cell == "rnn":
            torch.tanh(gates + recurrent, out=after)
            return
        if inputs.cell == "lstm":
            i, f, g, o = (gates + recurrent).chunk(4, dim=-1)
            c = f.sigmoid() * cs[:, t] + i.sigmoid() * g.tanh()
            cs[:, t + 1] = c
            torch.mul(o.sigmoid(), c.tanh(), out=after)
            return
        r, z = (gates[:, : 2 * H] + recurrent[:, : 2 * H]).sigmoid_().chunk(2, dim=-1)
        if inputs.cell == "gru":
            n = torch.addcmul(gates[:, 2 * H :], r, recurrent[:, 2 * H :]).tanh_()
        else:
            n = grouped_linear(r * h, inputs.U_n, inputs.b_n).to(h)  # autocast has made it bfloat16
            n.add_(gates[:, 2 * H :]).tanh_()
        torch.lerp(n, h, z, out=after)

    def derivatives(self, gates: Tensor, recurrent: Tensor, hs: Tensor, cs: Tensor) -> Derivatives:
        """Compute the factors of the gradients from the terms of the gates [B, T, G * H]."""
        return derivatives(self.inputs, gates, recurrent, hs, cs)

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
    ) -> tuple[Tensor, Tensor]:
        """Compute the gradients of the gates at step t.

        dh and dc [B, H] are the gradients of state t + 1; grad_h and grad_c those of state t from
        the outputs. Writes the gradients of the input terms dx [B, G * H] and of the recurrent
        terms dr [B, R]. Returns the part of the gradient of state t that does not pass through W,
        and the gradient of its memory cell.
        """
        inputs, H = self.inputs, self.inputs.hidden
        if inputs.cell == "rnn":
            torch.mul(factors.x[:, t], dh, out=dx)
            dr.copy_(dx)
            return grad_h, dc
        if inputs.cell == "lstm":
            dc = torch.addcmul(dc, dh, factors.to_cell[:, t])
            both = torch.cat((dc, dc, dc, dh), dim=-1)
            torch.mul(factors.x[:, t], both, out=dx)
            dr.copy_(dx)
            return grad_h, torch.addcmul(grad_c, dc, factors.direct[:, t])
        direct = torch.addcmul(grad_h, dh, factors.direct[:, t])
        if inputs.cell == "gru":
            torch.mul(factors.x[:, t], dh.repeat(1, 3), out=dx)
            dr[:, : 2 * H] = dx[:, : 2 * H]
            torch.mul(factors.h[:, t], dh, out=dr[:, 2 * H :])
            return direct, dc
        torch.mul(factors.x[:, t], dh.repeat(1, 2), out=dx[:, H:])
        U_T = inputs.U_n.mT
        d_rh = grouped_linear(dx[:, 2 * H :], U_T, U_T.new_zeros(U_T.shape[:2]))
        torch.mul(d_rh, factors.reset[:, t], out=dx[:, :H])
        dr.copy_(dx[:, : 2 * H])
        return direct.addcmul_(d_rh, factors.gate[:, t]), dc

    def backward_attend(
        self, q: Tensor, weights: Tensor, grad_weights: Tensor, dx: Tensor, dq: Tensor, ds: Tensor
    ) -> None:
        """Compute the gradients of the query dq [B, D] and of the scores ds [B, S]."""
        inputs = self.inputs
        grad = (
            torch.bmm(inputs.memory_gates, dx[..., None])[..., 0].add_(grad_weights).mul_(weights)
        )
        torch.addcmul(grad, weights, grad.sum(dim=-1, keepdim=True), value=-1, out=ds)
        if inputs.scorer == "dot":
            dq.copy_(torch.bmm(ds[:, None], inputs.keys)[:, 0])
            return
        y = self._activation(q)
        grad_keys, grad_v = self.gradients
        grad_v.addmv_(y.flatten(0, 1).T, ds.flatten(), alpha=self._tanh_factor)
        slope = y.square_().neg_().add_(1) if self.exp_keys is None else y.addcmul_(y, y, value=-1)
        factor = self._tanh_factor**2
        torch.mul(torch.bmm(ds[:, None], slope)[:, 0], inputs.v * factor, out=dq)
        grad_keys.addcmul_(slope, ds[..., None], value=factor)

    def _activation(self, q: Tensor) -> Tensor:
        """Compute tanh(q + keys), or r [B, S, D]."""
        if self.exp_keys is None:
            return torch.add(q[:, None], self.inputs.keys).tanh_()
        exp_q = q.mul(2).clamp_(-2 * LARGEST, 2 * LARGEST).exp_()
        return torch.addcmul(q.new_ones(()), exp_q[:, None], self.exp_keys).reciprocal_()

    @property
    def _tanh_factor(self) -> float:
        """The factor of `_activation` in tanh(q + keys)."""
        return 1.0 if self.exp_keys is None else -2.0

    def additive_gradients(self, q: Tensor, ds: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of keys and v of additive scores, after all steps.

        q [B, T, D] and ds [B, T, S] are the queries and the gradients of the scores.
        """
        grad_keys, grad_v = self.gradients
        return grad_keys * self.inputs.v, grad_v
