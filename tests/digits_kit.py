"""Digits of 3 x 5 cells, drawn somewhere on a dark canvas."""

import torch
from torch import Tensor

_FONT = """
### .#. ### ### #.# ### ### ### ### ###
#.# ##. ..# ..# #.# #.. #.. ..# #.# #.#
#.# .#. ### ### ### ### ### ..# ### ###
#.# .#. #.. ..# ..# ..# #.# ..# #.# ..#
### ### ### ### ..# ### ### ..# ### ###
"""
GLYPHS = torch.tensor(
    [[[c == "#" for c in row.split()[d]] for row in _FONT.split("\n") if row] for d in range(10)]
).float()  # [10, 5, 3]


def digits(n: int, side: int, scale: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """n digits, each cell scale x scale pixels, anywhere they fit: [n, 1, side, side] and [n]."""
    glyphs = GLYPHS.repeat_interleave(scale, dim=1).repeat_interleave(scale, dim=2)
    height, width = glyphs.shape[1:]
    names = torch.randint(0, 10, (n,), generator=generator)
    top = torch.randint(0, side - height + 1, (n,), generator=generator)
    left = torch.randint(0, side - width + 1, (n,), generator=generator)
    images = torch.zeros(n, 1, side, side)
    for i in range(n):
        images[i, 0, top[i] : top[i] + height, left[i] : left[i] + width] = glyphs[names[i]]
    return images, names
