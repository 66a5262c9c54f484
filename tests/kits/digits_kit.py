"""Images of digits of 3 x 5 cells on a black background."""

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
    """Return all digits at all positions [K, 1, side, side] and their labels [K].

    A cell has scale x scale pixels.
    """
    glyphs = GLYPHS.repeat_interleave(scale, dim=1).repeat_interleave(scale, dim=2)
    height, width = glyphs.shape[1:]
    images, labels = [], []
    for label, glyph in enumerate(glyphs):
        for top in range(side - height + 1):
            for left in range(side - width + 1):
                image = torch.zeros(1, side, side)
                image[0, top : top + height, left : left + width] = glyph
                images.append(image)
                labels.append(label)
    return torch.stack(images), torch.tensor(labels)
