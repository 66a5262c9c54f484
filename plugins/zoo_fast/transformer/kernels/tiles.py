"""Sizes of the tiles of the decoding kernels, as measured on an H200."""

from __future__ import annotations

from typing import Any

import torch
import triton

SPLIT = 256
"""Keys up to which they are not split, if a program reads all of them."""
_KEYS = ("BM", "BN", "BK", "STAGES", "num_warps")
_WIDE = {
    ("heads", 16): (16, 32, 256, 4, 4),
    ("heads", 32): (16, 32, 256, 4, 4),
    ("heads", 64): (64, 16, 128, 6, 4),
    ("heads", 128): (64, 32, 128, 4, 4),
    ("paired", 16): (16, 64, 256, 3, 4),
    ("paired", 32): (32, 64, 256, 3, 4),
    ("paired", 64): (64, 32, 128, 3, 4),
    ("paired", 128): (128, 64, 64, 4, 8),
    ("output", 16): (16, 64, 128, 4, 4),
    ("output", 32): (32, 64, 128, 4, 4),
    ("output", 64): (64, 64, 128, 3, 4),
    ("output", 128): (128, 128, 64, 3, 8),
    ("plain", 16): (16, 32, 256, 6, 4),
    ("plain", 32): (32, 16, 256, 6, 4),
    ("plain", 64): (64, 16, 256, 4, 4),
    ("plain", 128): (64, 16, 256, 4, 4),
}
"""Tiles of wide layers by form and rows; reading the weights takes the time."""
_FLOAT32_KEYS = ("BM", "BN", "BK", "SLICES", "STAGES")
_FLOAT32 = {
    ("heads", 16): (16, 8, 256, 8, 3),
    ("heads", 32): (16, 16, 128, 4, 4),
    ("paired", 16): (16, 32, 128, 4, 3),
    ("paired", 32): (32, 32, 128, 4, 3),
    ("output", 16): (16, 64, 64, 1, 4),
    ("output", 32): (32, 64, 32, 1, 5),
    ("output", 64): (64, 64, 32, 1, 4),
    ("plain", 16): (16, 16, 256, 4, 3),
    ("plain", 32): (32, 16, 128, 4, 4),
    ("long", 32): (32, 16, 256, 8, 3),
    ("large", 32): (32, 32, 128, 4, 4),
}
"""Tiles of layers in float32 by form and rows; plain ones with more than 1024 inputs are long, or
large if they have more than 2048 outputs too."""
PROGRAMS = 264
"""Programs that fill the device."""
BLOCK = 64
"""Keys of one of several programs that each read their keys at once."""
SPLITS = {False: (64, 768), True: (128, 528)}
"""Keys of a split, and programs from which the keys are not split further; by whether a
program has several query heads."""
SUMMED_ROWS = 8
"""Rows in float32 up to which threads sum products faster than tensor cores multiply parts."""
PREFETCHED = 8
"""Lines of each row of weights that are loaded into the L2 cache while the kernel before runs."""


def linear_tiles(
    M: int,
    N: int,
    K: int,
    *,
    dtype: torch.dtype,
    half_head: int | None = None,
    paired: bool = False,
) -> dict[str, int]:
    """Return the tiles of a linear layer from K to N for M rows, and the launch options.

    Args:
        half_head: half of the width of a head, if a tile contains pairs of dimensions of one head;
            it is divided by the size of the tile.
        paired: whether a tile contains rows of two matrices, as with a gate.
    """
    width = triton.next_power_of_2(K)
    plain = "output" if N >= 16384 else "plain"
    form = "heads" if half_head is not None else "paired" if paired else plain
    if M == 1:
        block_n = 2 if paired or half_head is not None or K > 4096 else 4
        warps = 8 if K > 2048 else 4
        tiles = {"BM": 1, "BN": block_n, "BK": min(8192, width), "STAGES": 1, "num_warps": warps}
    elif dtype == torch.float32:
        outputs = 2 * N if paired else N
        if _sums_products(M, outputs, half_head):
            tiles = _summed_tiles(M, outputs, K, matrices=1 if form == plain else 2)
        else:
            tiles = _float32_tiles(M, N, K, form)
    elif K <= 512 and M >= 128 and N >= 2048:
        tiles = {"BM": 32, "BN": 64, "BK": 128, "STAGES": 3, "num_warps": 8}
    elif K <= 512 and N >= 2048 and half_head is None and not paired:
        tiles = {"BM": 16, "BN": 64, "BK": width, "STAGES": 1, "num_warps": 8}
    elif K <= 512:
        tiles = {"BM": 16, "BN": 32, "BK": width, "STAGES": 1, "num_warps": 4}
    elif N <= 1024 and M <= 32 and half_head is None and not paired:
        block_k, stages = (256, 3) if K <= 1024 else (512, 6)
        tiles = {"BM": 16, "BN": 16, "BK": block_k, "STAGES": stages, "num_warps": 2}
    else:
        rows = 16 if M <= 16 else 32 if M <= 32 else 64 if M <= 64 else 128
        tiles = dict(zip(_KEYS, _WIDE[form, rows], strict=True))
        if form == "plain":
            tiles["BN"] = _fill(tiles["BN"], triton.cdiv(M, tiles["BM"]) * N)
    if half_head is not None:
        while half_head % tiles["BN"]:
            tiles["BN"] //= 2
    if tiles["BK"] >= K:  # the weights are loaded at once
        return tiles | {"NORM_BK": 0, "LINES": 0, "SLICES": 1}
    norm = {"NORM_BK": min(width, 8192 // tiles["BM"]), "LINES": _lines(M, K, dtype)}
    return {"SLICES": 1} | tiles | norm


def _sums_products(M: int, N: int, half_head: int | None) -> bool:
    """Whether threads sum the products of M rows and N outputs in float32; otherwise tensor cores,
    which compute eight outputs at a time, multiply parts of the numbers."""
    has_eights = half_head is None or half_head % 8 == 0
    return M <= SUMMED_ROWS or (M <= 16 and N <= 1024) or not has_eights


def _float32_tiles(M: int, N: int, K: int, form: str) -> dict[str, int]:
    """Return the tiles of products of parts of numbers in float32."""
    rows = 16 if M <= 16 else 32 if M <= 32 else 64
    if form == "plain" and rows == 32 and K > 1024:
        form = "long" if N <= 2048 else "large"
    tiles = dict(zip(_FLOAT32_KEYS, _FLOAT32[form, rows], strict=True))
    tiles["BK"] = min(tiles["BK"], max(16, triton.next_power_of_2(K)))
    return tiles | {"num_warps": max(4, tiles["SLICES"])}


def _summed_tiles(M: int, N: int, K: int, *, matrices: int) -> dict[str, int]:
    """Return the tiles of products in float32 that threads sum: a program has few rows and outputs.

    Args:
        N: outputs of all matrices.
        matrices: number of matrices whose outputs a program computes, as many of each.
    """
    rows = min(SUMMED_ROWS, triton.next_power_of_2(M))
    if N >= 16384:
        outputs, inputs = (16, 64) if rows == SUMMED_ROWS else (8, 256)
    elif K <= 512:
        outputs, inputs = 4, triton.next_power_of_2(K)
    else:
        outputs, inputs = 4, 256 if rows == SUMMED_ROWS else 512
    blocks = {"BM": rows, "BN": outputs // matrices, "BK": inputs}
    return blocks | {"STAGES": 3, "num_warps": 4}


def uses_library(M: int, N: int, dtype: torch.dtype, *, paired: bool = False) -> bool:
    """Whether the library's product of M rows and N outputs is faster than the kernels."""
    max_rows = 128 if N >= 16384 and not paired else 32
    return dtype == torch.float32 and max_rows < M


def max_output_rows(K: int) -> int:
    """Return the rows of K inputs up to which the kernel of the output layer is faster than the
    library, whatever the dtype."""
    return 64 if K > 512 else 16


def _fill(block: int, outputs: int) -> int:
    """Return the size of blocks, at most 64, with which all programs run at the same time."""
    while block < 64 and outputs > block * (PROGRAMS // 2):
        block *= 2
    return block


def norm_first(M: int, K: int, dtype: torch.dtype) -> bool:
    """Whether a separate kernel computes the norm before linear layers.

    Programs that all normalise the rows take longer than one kernel more, unless the rows are short
    or only one. Neither products of sliced inputs nor the library normalise.
    """
    return M > 1 and (K > 512 or (dtype == torch.float32 and M > SUMMED_ROWS))


def input_parts(M: int, N: int, K: int, dtype: torch.dtype) -> int:
    """Return into how many parts the inputs of a layer before a norm are divided, so that more
    programs read its weights; the kernel of the norm adds their products.

    The parts of narrow layers are so small that programs load their weights at once.
    """
    if dtype == torch.float32 or M > 16 or not norm_first(M, N, dtype):
        return 1
    if N <= 1024 and K <= 4096:
        return next((K // size for size in (512, 256) if K % size == 0), 1)
    parts = max(1, PROGRAMS * 16 // N)
    while parts > 1 and K % (parts * 256):
        parts -= 1
    return parts


def fit_stages(
    tiles: dict[str, int], matrices: int, dtype: torch.dtype, shared_memory: int
) -> dict[str, int]:
    """Return the tiles with as many stages as the shared memory of a program holds.

    Args:
        matrices: number of matrices of weights that a program reads.
        shared_memory: bytes.
    """
    stage = (tiles["BM"] + matrices * tiles["BN"]) * tiles["BK"] * dtype.itemsize
    return tiles | {"STAGES": max(1, min(tiles["STAGES"], shared_memory // stage))}


def _lines(M: int, K: int, dtype: torch.dtype) -> int:
    """Return how many lines of 128 bytes of a row of weights are loaded into the L2 cache first.

    With several rows the stages of the loop load the rest earlier than that.
    """
    lines = int(triton.next_power_of_2(K * dtype.itemsize // 128 + 1)) // 2
    if norm_first(M, K, dtype):
        return min(PREFETCHED, lines) if M <= 32 else 0
    return lines


def attention_tiles(
    R: int, groups: int, G: int, S: int, D: int, *, dtype: torch.dtype, cached: bool
) -> dict[str, Any]:
    """Return the tiles of R rows and groups of G query heads of width D that attend to S keys, and
    the launch options."""
    keys = max(16, triton.next_power_of_2(S))
    if R * groups <= PROGRAMS // 4 and S <= 2 * SPLIT:
        block = keys if S <= SPLIT else BLOCK
        warps = max(1, triton.next_power_of_2(D) // 32)
        warps = warps if S > SPLIT else 8 if block > 128 else 4
        sizes = {"SPLITS": -(-S // block), "G": 1, "SHARE": G, "BG": 1, "BS": block}
        return sizes | {"STATIC": True, "num_warps": warps}
    sizes = {"SPLITS": _splits(R * groups, S, grouped=G > 1), "G": G, "SHARE": 1}
    if G > 1:
        heads, stages = max(16, triton.next_power_of_2(G)), 4 if D * dtype.itemsize <= 128 else 3
        launch = {"num_warps": 2, "num_stages": stages}
        return sizes | {"BG": heads, "BS": min(64, keys), "STATIC": False} | launch
    # One warp has no barriers.
    block, warps = min(32, keys), max(1, triton.next_power_of_2(D) // 64)
    if cached and D <= 64 and keys > 32:
        block, warps = 64, 2
    is_static = not cached and block >= S
    return sizes | {"BG": 1, "BS": block, "STATIC": is_static, "num_warps": warps}


def fit_attention(
    tiles: dict[str, Any], width: int, dtype: torch.dtype, shared_memory: int
) -> dict[str, Any]:
    """Return the tiles with fewer stages, then fewer keys, as the shared memory of a program holds.

    Args:
        width: of a head, a power of two.
        shared_memory: bytes.
    """
    fitted = dict(tiles)
    while "num_stages" in fitted and shared_memory < _attention_bytes(fitted, width, dtype):
        if fitted["num_stages"] > 2:
            fitted["num_stages"] -= 1
        elif fitted["BS"] > 16:
            fitted["BS"] //= 2
        else:
            break
    return fitted


def _attention_bytes(tiles: dict[str, Any], width: int, dtype: torch.dtype) -> int:
    """Return the bytes of the keys and values of all stages but one, of queries and of weights."""
    loaded = (tiles["num_stages"] - 1) * tiles["BS"] * width
    return int(2 * dtype.itemsize * (loaded + tiles["BG"] * (width + tiles["BS"])))


def _splits(programs: int, S: int, *, grouped: bool) -> int:
    """Return into how many parts the keys are split."""
    keys, enough = SPLITS[grouped]
    return 1 if S <= SPLIT else min(-(-S // keys), -(-enough // programs), 64)
