"""Launches of the Triton kernels of additive scores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from zoo.attention.kernels import additive_tiles


@dataclass(frozen=True)
class Blocks:
    """Numbers of queries, keys and hidden units of a tile, and of warps that compute it."""

    queries: int = 8
    keys: int = 16
    width: int = 32
    warps: int = 8

    def options(self) -> dict[str, int]:
        return {"TB": self.queries, "SB": self.keys, "DB": self.width, "num_warps": self.warps}


ONE_QUERY = Blocks(queries=1, keys=64, warps=4)


def smaller_maximum(a: Tensor, b: Tensor) -> Tensor:
    """Return the smaller of the largest absolute values of both tensors, not synchronised."""
    norms = [torch.linalg.vector_norm(part, ord=float("inf")).float() for part in (a, b)]
    return torch.minimum(norms[0], norms[1])


def triton_scores(
    a: Tensor, b: Tensor, v: Tensor, maximum: Tensor, blocks: Blocks | None = None
) -> Tensor:
    """Compute scores [N, T, S] of a [N, T, D], b [N, S, D] and v [D]."""
    (N, T, D), S = a.shape, b.shape[1]
    blocks = blocks or (Blocks(queries=16) if T > 1 else ONE_QUERY)
    output = a.new_empty(N, T, S)
    grid = (N, triton.cdiv(T, blocks.queries), triton.cdiv(S, blocks.keys))
    sizes = (T, S, D, *a.stride(), *b.stride())
    additive_tiles.scores[grid](a, b, v, maximum, output, *sizes, **blocks.options())
    return output


def triton_gradients(
    a: Tensor, b: Tensor, v: Tensor, maximum: Tensor, g: Tensor, blocks: Blocks | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of a, b and v from the gradient g [N, T, S] of the scores."""
    grad_a, g_r = _gradient(a, b, v, maximum, g, True, blocks)
    grad_b, _ = _gradient(b, a, v, maximum, g.transpose(1, 2), False, blocks)
    total = g.sum(dtype=torch.float32)
    return grad_a, grad_b, (total - 2 * g_r.sum(dim=(0, 1))).to(v.dtype)


def _gradient(
    a: Tensor,
    b: Tensor,
    v: Tensor,
    maximum: Tensor,
    g: Tensor,
    with_v: bool,
    blocks: Blocks | None,
) -> tuple[Tensor, Tensor]:
    """Return the gradient of a, and the sums of g * r for the gradient of v if with_v."""
    (N, T, D), S = a.shape, b.shape[1]
    blocks = blocks or (Blocks() if T > 1 else ONE_QUERY)
    rows = triton.cdiv(T, blocks.queries)
    grad_a = a.new_empty(N, T, D)
    g_r = torch.empty((N, rows, D) if with_v else 0, dtype=torch.float32, device=a.device)
    sizes = (T, S, D, *a.stride(), *b.stride(), *g.stride())
    additive_tiles.gradient[(N, rows, triton.cdiv(D, blocks.width))](
        a, b, v, maximum, g, grad_a, g_r, *sizes, WITH_V=with_v, **blocks.options()
    )
    return grad_a, g_r
