"""Digits of 3 x 5 cells, drawn on a dark canvas."""

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


def digits(side: int, scale: int) -> tuple[Tensor, Tensor]:
    """Every digit everywhere it fits, a cell scale x scale pixels: [K, 1, side, side] and [K]."""
    glyphs = GLYPHS.repeat_interleave(scale, dim=1).repeat_interleave(scale, dim=2)
    height, width = glyphs.shape[1:]
    images, names = [], []
    for name, glyph in enumerate(glyphs):
        for top in range(side - height + 1):
            for left in range(side - width + 1):
                image = torch.zeros(1, side, side)
                image[0, top : top + height, left : left + width] = glyph
                images.append(image)
                names.append(name)
    return torch.stack(images), torch.tensor(names)
