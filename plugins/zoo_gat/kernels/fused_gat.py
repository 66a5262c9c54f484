"""GAT attention over edges in Triton kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from zoo_gat.edges import EdgeList
from zoo_gat.kernels import segments


def fused_gat(q: Tensor, k: Tensor, v: Tensor, edges: EdgeList, slope: float) -> Tensor:
    """Compute softmax attention over edges with the scores LeakyReLU(q_target + k_source).

    Shapes:
        q, k [nodes, H]; v [nodes, H, D] -> [nodes, H, D].
    """
    apply: Callable[..., Tensor] = _FusedGat.apply
    return apply(q.contiguous(), k.contiguous(), v.contiguous(), edges, slope)


class _FusedGat(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, edges: EdgeList, slope: float) -> Tensor:
        (N, H, D), by_target = v.shape, edges.by_target
        output = torch.empty_like(v)
        lse = torch.empty(N, H, dtype=torch.float32, device=v.device)
        segments.forward[(N,)](
            q,
            k,
            v,
            by_target.first_edge,
            edges.source[by_target.order],
            edges.valid[by_target.order],
            output,
            lse,
            slope,
            H,
            D,
            **_blocks(H, D),
        )
        ctx.save_for_backward(q, k, v, output, lse)
        ctx.edges, ctx.slope = edges, slope
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, output, lse = ctx.saved_tensors
        edges: EdgeList = ctx.edges
        (N, H, D), by_source = v.shape, edges.by_source
        delta = (output.float() * grad_output.float()).sum(dim=-1)
        grad_v, grad_k = torch.empty_like(v), torch.empty_like(k)
        grad_x = torch.zeros(len(edges.source), H, dtype=torch.float32, device=v.device)
        segments.backward[(N,)](
            q,
            k,
            v,
            by_source.first_edge,
            edges.target[by_source.order],
            edges.valid[by_source.order],
            by_source.order,
            grad_output.contiguous(),
            lse,
            delta,
            grad_v,
            grad_k,
            grad_x,
            ctx.slope,
            H,
            D,
            **_blocks(H, D),
        )
        grad_q = edges.scatter_sum(grad_x)
        return grad_q.to(q.dtype), grad_k, grad_v, None, None


def _blocks(H: int, D: int) -> dict[str, int]:
    """Return the block sizes: edges so that a block of values has about 1,024 elements."""
    heads, width = triton.next_power_of_2(H), triton.next_power_of_2(D)
    edges = max(1, min(16, 1024 // (heads * width)))
    return {"EB": edges, "HB": heads, "DB": width, "num_warps": 2}
