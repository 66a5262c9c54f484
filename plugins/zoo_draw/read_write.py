"""How DRAW reads and writes: through a grid of filters, or the whole image at once."""

import torch
from torch import Tensor, nn

from zoo.plugin import full_precision
from zoo_draw.filters import filters

Shape = tuple[int, int, int]
"""Channels, height and width of the images."""


class Reader(nn.Module):
    """What the encoder sees of an image and of what is still wrong with it.

    Without a grid both whole (equation 17 of Gregor et al. 2015), else through one that the
    decoder's state places (equations 21 and 27).

    Shapes:
        images, errors [B, C, height, width], states [B, hidden] -> [B, output_dim].
    """

    def __init__(self, *, grid: int | None, hidden: int, shape: Shape) -> None:
        super().__init__()
        channels, height, width = shape
        self.grid = grid or 0
        self.place = nn.Linear(hidden, 5) if grid else None
        self.output_dim = 2 * channels * (grid**2 if grid else height * width)

    def forward(self, images: Tensor, errors: Tensor, states: Tensor) -> Tensor:
        both = torch.cat([full_precision(images), full_precision(errors)], dim=1)
        if self.place is not None:
            parameters = full_precision(self.place(states))
            both = filters(parameters, self.grid, *images.shape[-2:]).read(both)
        return both.flatten(1).to(states)


class Writer(nn.Module):
    """What the decoder adds to the canvas.

    Without a grid all of it (equation 18 of Gregor et al. 2015), else a patch through one that
    it places itself (equations 21, 28 and 29).

    Shapes:
        states [B, hidden] -> [B, C, height, width], at least in float32.
    """

    def __init__(self, *, grid: int | None, hidden: int, shape: Shape) -> None:
        super().__init__()
        channels, height, width = shape
        self.grid = grid or 0
        self.shape = shape
        self.place = nn.Linear(hidden, 5) if grid else None
        self.patch = nn.Linear(hidden, channels * (grid**2 if grid else height * width))

    def forward(self, states: Tensor) -> Tensor:
        channels, height, width = self.shape
        patches = full_precision(self.patch(states))
        if self.place is None:
            return patches.view(-1, *self.shape)
        parameters = full_precision(self.place(states))
        patches = patches.view(-1, channels, self.grid, self.grid)
        return filters(parameters, self.grid, height, width).write(patches)
