"""Steps of the recurrence in Triton kernels.

Notation: see `SequenceInputs`.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from zoo_fast.device.triton_support import float32_products
from zoo_fast.recurrent.kernels import attention_step, cell_step
from zoo_fast.recurrent.kernels.product import product
from zoo_fast.recurrent.sequence_inputs import Derivatives, SequenceInputs
from zoo_fast.recurrent.sequence_steps import TorchSteps
from zoo_recurrent.cells import GATES

MAX_SOURCE = 65536
"""Largest number of source positions; a program holds the weights of all of them."""

MAX_ROWS = 128
"""Number of items from which the products of a step are those of torch."""

# Numbers of source positions and of units of a block, and of warps.
SCORE_BLOCKS = (4, 512, 4)
ADVANCE_BLOCKS = (32, 32, 2)
GATE_BLOCKS = (4, 512, 4)
QUERY_BLOCKS = (64, 32, 4)
# Rows, columns and inner length of a block, number of parts, warps and stages.
PROJECT_BLOCKS = (64, 16, 64, 2, 4, 4)
UNPROJECT_BLOCKS = (16, 64, 64, 4, 4, 4)


class TritonSteps(TorchSteps):
    """Steps of the recurrence in a few kernels each; 'gru-cho' computes its cell in torch."""

    def __init__(self, inputs: SequenceInputs) -> None:
        super().__init__(inputs)
        B, S = inputs.mask.shape
        self.scores = torch.empty(B, S, dtype=torch.float32, device=inputs.mask.device)
        self.S, self.H = S, inputs.hidden
        self.cell = "none" if inputs.cell == "gru-cho" else inputs.cell
        self.gates = GATES[inputs.cell]  # type: ignore[index]
        self.additive = inputs.scorer == "additive"
        self.padded_source = triton.next_power_of_2(max(S, 1))
        self.partials = self.scores
        self.parts = 0
        self.rows = max(1, B // len(inputs.W))
        # TF32 represents half-precision numbers exactly.
        rounds = inputs.h0.dtype == torch.float32
        exact = float32_products() != "tf32"
        self.precision = "tf32x3" if rounds and exact else "tf32"

    def project(self, h: Tensor, row: Tensor) -> None:
        """Compute partial sums of W h, which `attend` and `advance` add."""
        if self.rows > MAX_ROWS:
            super().project(h, row)
        else:
            self._multiply(h, self.W_T, PROJECT_BLOCKS)

    def unproject(self, before: Tensor, d_row: Tensor) -> Tensor:
        """Compute partial sums of the gradient of h, which `backward_cell` adds to the result."""
        if self.rows > MAX_ROWS:
            return super().unproject(before, d_row)
        self._multiply(d_row, self.inputs.W, UNPROJECT_BLOCKS)
        return before

    def finish(self, dh: Tensor) -> Tensor:
        return (dh + self.partials.sum(dim=0)).to(dh.dtype) if self.parts else dh.clone()

    def _multiply(self, a: Tensor, w: Tensor, blocks: tuple[int, ...]) -> None:
        """Compute the partial sums of a [B, K] times w [groups, K, N]."""
        (B, K), N = a.shape, w.shape[2]
        MB, NB, KB, parts, warps, stages = blocks
        part = triton.cdiv(triton.cdiv(K, KB), parts) * KB
        parts = triton.cdiv(K, part)
        if self.partials.shape != (parts, B, N):
            self.partials = torch.empty(parts, B, N, dtype=torch.float32, device=a.device)
        self.parts = parts
        product[(triton.cdiv(N, NB), len(w) * triton.cdiv(self.rows, MB), parts)](
            a, w, self.partials, a.stride(0), B, self.rows, K, N, PART=part, MB=MB, NB=NB, KB=KB,
            PRECISION=self.precision, num_warps=warps, num_stages=stages,
        )  # fmt: skip

    def attend(self, q: Tensor, weights: Tensor) -> None:
        """Compute the scores; `advance` computes the weights."""
        inputs, D = self.inputs, q.shape[1]
        SB, DB, warps = SCORE_BLOCKS
        attention_step.scores[(len(q), triton.cdiv(self.S, SB))](
            q,
            inputs.b,
            self.partials,
            inputs.keys,
            inputs.v,
            inputs.mask,
            self.scores,
            q.stride(0),
            inputs.W.shape[1],
            self.S,
            D,
            PARTS=self.parts if inputs.query_rows else 0,
            ADDITIVE=self.additive,
            SB=SB,
            DB=_block(D, DB),
            num_warps=warps,
        )

    def advance(
        self, t: int, weights: Tensor | None, recurrent: Tensor, hs: Tensor, cs: Tensor
    ) -> None:
        inputs, h, after = self.inputs, hs[:, t], hs[:, t + 1]
        x, c = inputs.x_gates[:, t], cs[:, t] if cs.numel() else h
        by_cell = self.cell != "none"
        output = after if by_cell else torch.empty_like(x)
        row = after if weights is None else weights
        SB, HB, warps = ADVANCE_BLOCKS
        HB = _block(self.H, HB)
        cell_step.advance[(len(h), triton.cdiv(self.H, HB))](
            self.scores,
            inputs.memory_gates,
            x,
            recurrent,
            inputs.b,
            self.partials,
            h,
            c,
            row,
            output,
            cs[:, t + 1] if cs.numel() else after,
            x.stride(0),
            recurrent.stride(0),
            output.stride(0),
            row.stride(0),
            self.rows,
            inputs.W.shape[1],
            inputs.query_rows,
            self.S,
            self.H,
            PARTS=self.parts,
            CELL=self.cell,
            G=self.gates,
            ATTEND=weights is not None,
            SP=self.padded_source,
            SB=SB,
            HB=HB,
            num_warps=warps,
        )
        if not by_cell:
            self.advance_cell(t, output, recurrent, hs, cs)

    def derivatives(self, gates: Tensor, recurrent: Tensor, hs: Tensor, cs: Tensor) -> Derivatives:
        """Compute the factors; those of a GRU in float32 replace the terms of the gates."""
        if self.cell != "gru":
            return super().derivatives(gates, recurrent, hs, cs)
        (B, T, _), H = gates.shape, self.H
        is_wide, is_new = gates.dtype == torch.float32, gates is not self.inputs.x_gates
        x = gates if is_wide and is_new else torch.empty_like(gates, dtype=torch.float32)
        if is_wide:
            direct, h = recurrent[..., :H], recurrent[..., 2 * H :]
        else:
            empty = torch.empty(2, B, T + 1, H, dtype=torch.float32, device=gates.device)
            direct, h = empty[:, :, :-1]
        HB = _block(H, 512)
        cell_step.gru_factors[(B * T, triton.cdiv(H, HB))](
            gates, recurrent, hs, x, h, direct, recurrent.stride(1), h.stride(1), T, H, HB=HB
        )
        none = gates.new_empty(0)
        return Derivatives(x, h, direct, none, none, none)

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
        inputs, B, attends = self.inputs, len(dh), self.inputs.attends(t)
        before, dc_before = torch.empty_like(grad_h), dc
        if self.cell == "none":
            dh = self.finish(dh)
            before, dc_before = super().backward_cell(t, factors, dh, dc, grad_h, grad_c, dx, dr)
            if not attends:
                return before, dc_before
        lstm = self.cell == "lstm"
        if lstm:
            dc_before = torch.empty_like(grad_c)
        x = factors.x[:, t]
        direct = factors.direct[:, t] if factors.direct.numel() else x
        SB, HB, warps = GATE_BLOCKS
        programs = (triton.cdiv(self.S, SB) if attends else 0) + (self.cell != "none")
        cell_step.gate_gradient[(B, programs)](
            dh,
            self.partials,
            dc if lstm else dh,
            x,
            factors.h[:, t] if factors.h.numel() else direct,
            direct,
            factors.to_cell[:, t] if lstm else direct,
            inputs.memory_gates,
            grad_h,
            grad_c if lstm else grad_h,
            dx,
            dr,
            before,
            dc_before if lstm else before,
            self.scores,
            dh.stride(0),
            dc.stride(0) if lstm else 0,
            x.stride(0),
            direct.stride(0),
            grad_h.stride(0),
            dx.stride(0),
            dr.stride(0),
            self.S,
            self.H,
            PARTS=self.parts,
            CELL=self.cell,
            G=self.gates,
            SB=SB,
            HB=_block(self.H, HB),
            num_warps=warps,
        )
        return before, dc_before

    def backward_attend(
        self, q: Tensor, weights: Tensor, grad_weights: Tensor, dx: Tensor, dq: Tensor, ds: Tensor
    ) -> None:
        """Compute the gradients; `backward_cell` computed the gradient of the weights."""
        inputs, (B, D) = self.inputs, q.shape
        SB, DB, warps = QUERY_BLOCKS
        DB = _block(D, DB)
        attention_step.query_gradient[(B, triton.cdiv(D, DB))](
            q,
            inputs.keys,
            inputs.v,
            weights,
            self.scores,
            grad_weights,
            ds,
            dq,
            q.stride(0),
            weights.stride(0),
            grad_weights.stride(0),
            ds.stride(0),
            dq.stride(0),
            self.S,
            D,
            ADDITIVE=self.additive,
            SP=self.padded_source,
            SB=SB,
            DB=DB,
            num_warps=warps,
        )

    def additive_gradients(self, q: Tensor, ds: Tensor) -> tuple[Tensor, Tensor]:
        inputs, (B, T, D) = self.inputs, q.shape
        SB, DB = 16, _block(D, 64)
        blocks = triton.cdiv(self.S, SB)
        grad_keys = torch.empty_like(inputs.keys)
        grad_v = torch.empty(B, blocks, D, dtype=torch.float32, device=q.device)
        attention_step.additive_gradients[(B, blocks, triton.cdiv(D, DB))](
            q, inputs.keys, inputs.v, ds, grad_keys, grad_v, q.stride(0), q.stride(1),
            T, self.S, D, SB=SB, DB=DB, num_warps=4,
        )  # fmt: skip
        return grad_keys, grad_v.sum(dim=(0, 1)).to(inputs.v.dtype)


def _block(width: int, largest: int) -> int:
    """Return the block size for a width: a power of two, at most ``largest``."""
    power: int = triton.next_power_of_2(width)
    return min(largest, power)
