"""Sizes of the tiles of the decoding kernels, as measured on an H200."""

from __future__ import annotations

import triton

_SPLIT = 256
"""Keys of one program, if there are few programs."""
_PROGRAMS = 264
"""Programs that fill the device."""


def linear_tiles(M: int, N: int, K: int, *, half_head: int | None = None) -> dict[str, int]:
    """Return the tiles of a linear layer from K to N for M rows, and the launch options.

    Args:
        half_head: half of the width of a head, if a tile contains pairs of dimensions of one head;
            it is divided by the size of the tile.
    """
    norm_block = min(1024, triton.next_power_of_2(K))
    if M == 1:
        block_k = min(1024, triton.next_power_of_2(K))
        tiles = {"BM": 1, "BN": 4, "BK": block_k, "STAGES": 2, "num_warps": 4}
    else:
        block_m = min(64, max(16, triton.next_power_of_2(M)))
        block_m = 16 if M <= 64 else 32
        tiles = {"BM": block_m, "BN": 32, "BK": 64, "STAGES": 3, "num_warps": 4}
    if half_head is not None:
        while half_head % tiles["BN"]:
            tiles["BN"] //= 2
    return tiles | {"NORM_BK": norm_block}


def attention_splits(programs: int, S: int) -> int:
    """Return into how many parts the keys are split."""
    if programs >= _PROGRAMS or S <= _SPLIT:
        return 1
    return min(-(-S // _SPLIT), -(-_PROGRAMS // programs), 64)
