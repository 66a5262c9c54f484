"""Launches of the Triton kernels of additive scores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoo_fast.attention.kernels import additive_tiles

PROGRAMS = 256
"""Number of programs of the gradient kernel that occupy a GPU."""

EXP_BLOCK = 4096
MAX_HALF_QUERIES = 256
"""Largest number of queries whose gradients are added in half precision, with a second number for
the rounding error: in less memory, but slower if they do not stay in the cache."""


def cdiv(x: int, y: int) -> int:
    """Return x / y, rounded up. That of Triton takes ten times as long."""
    return -(-x // y)


@dataclass(frozen=True)
class Blocks:
    """Numbers of queries, keys and hidden units of a tile, of warps that compute it, and the
    largest number of registers of a thread."""

    queries: int
    keys: int
    width: int
    warps: int
    registers: int | None = None

    def options(self) -> dict[str, int]:
        tile = {"TB": self.queries, "SB": self.keys, "DB": self.width, "num_warps": self.warps}
        return tile if self.registers is None else tile | {"maxnreg": self.registers}


SCORE_BLOCKS = Blocks(queries=16, keys=8, width=32, warps=4)
SCORE_BLOCKS_OF_ONE = Blocks(queries=1, keys=64, width=32, warps=4)
GRADIENT_BLOCKS = Blocks(queries=4, keys=16, width=64, warps=4, registers=160)


def exponentials(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return e^{2a} and e^{2b} in float32, and the largest absolute values of both [2]."""
    maxima = torch.zeros(2, dtype=torch.float32, device=a.device)
    exp_a, exp_b = (torch.empty_like(x, dtype=torch.float32) for x in (a, b))
    blocks_a, blocks_b = cdiv(a.numel(), EXP_BLOCK), cdiv(b.numel(), EXP_BLOCK)
    additive_tiles.exponentials[(blocks_a + blocks_b,)](
        a, b, exp_a, exp_b, maxima, a.numel(), b.numel(), blocks_a, BLOCK=EXP_BLOCK, num_warps=8
    )
    return exp_a, exp_b, maxima


def triton_scores(
    terms: tuple[Tensor, Tensor, Tensor],
    exps: tuple[Tensor, Tensor, Tensor],
    *,
    causal: int | None = None,
    blocks: Blocks | None = None,
) -> Tensor:
    """Compute scores [N, T, S] in float32 of a [N, T, D], b [N, S, D] and v [H, D].

    Args:
        exps: output of `exponentials`.
        causal: query t attends to keys 0 to causal + t only, and other scores are undefined.
    """
    a, b, v = terms
    exp_a, exp_b, maxima = exps
    (N, T, D), S = a.shape, b.shape[1]
    blocks = blocks or (SCORE_BLOCKS if T > 1 else SCORE_BLOCKS_OF_ONE)
    output = torch.empty(N, T, S, dtype=torch.float32, device=a.device)
    grid = (N, cdiv(T, blocks.queries), cdiv(S, blocks.keys))
    additive_tiles.scores[grid](
        a, b, exp_a, exp_b, v, maxima, output, T, S, D, v.shape[0], causal or 0,
        CAUSAL=causal is not None, **blocks.options(),
    )  # fmt: skip
    return output


def triton_gradients(
    terms: tuple[Tensor, Tensor, Tensor],
    maxima: Tensor,
    g: Tensor,
    *,
    dtype: torch.dtype,
    causal: int | None = None,
    blocks: Blocks | None = None,
    parts: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of a, b (in ``dtype``) and v [H, D] from g [N, T, S], of the scores.

    The sum of g must be 0, as that of the gradient of a softmax is; else it is to be added to the
    gradient of v.

    Args:
        parts: number of parts of the keys that are processed in parallel; each needs memory for a
            gradient of a in float32.
    """
    a, b, v = terms
    (N, T, D), S, H = a.shape, b.shape[1], v.shape[0]
    blocks = blocks or GRADIENT_BLOCKS
    columns = cdiv(D, blocks.width)
    parts = min(parts or cdiv(PROGRAMS, N * columns), cdiv(S, blocks.keys))
    keys = cdiv(S, parts * blocks.keys) * blocks.keys
    parts = cdiv(S, keys)
    is_half = parts == 1 and T <= MAX_HALF_QUERIES
    grad_a = a.new_empty(parts, N, T, D, dtype=dtype if is_half else torch.float32)
    low = None if grad_a.dtype == torch.float32 else torch.empty_like(grad_a)
    grad_b = torch.empty_like(b, dtype=dtype)
    grad_v = a.new_empty(parts * N // H, H, D, dtype=torch.float32)
    additive_tiles.gradients[(N, columns, parts)](
        a, b, v, maxima, g, grad_a, low, grad_b, grad_v, N, T, S, D, H, keys, causal or 0,
        CAUSAL=causal is not None, **blocks.options(),
    )  # fmt: skip
    sums = grad_a[0] if parts == 1 else grad_a.sum(dim=0)
    return sums.to(dtype), grad_b, grad_v.sum(dim=0)
