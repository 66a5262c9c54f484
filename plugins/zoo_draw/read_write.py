"""Read and write operations of DRAW, with or without a grid of filters."""

import torch
from torch import Tensor, nn

from zoo.plugin import RecordsAttention, full_precision
from zoo_draw.filters import GridParameters, filter_banks

Shape = tuple[int, int, int]
"""Channels, height and width of the images."""


class Reader(RecordsAttention):
    """Read operation: concatenate the image and the error image.

    Without a grid, both are read in full (equation 17 of Gregor et al. 2015); with a grid, they are
    read through filters computed from the decoder state (equations 21 and 27). Recorded weights are
    those of the pixels, averaged over the grid: [B, 1, 1, height * width].

    Shapes:
        images, errors [B, C, height, width], states [B, hidden] -> [B, output_dim].
    """

    def __init__(self, *, grid: int | None, hidden: int, shape: Shape) -> None:
        super().__init__()
        channels, height, width = shape
        self.grid = grid or 0
        self.place = GridParameters(hidden, N=grid, size=max(height, width)) if grid else None
        self.output_dim = 2 * channels * (grid**2 if grid else height * width)

    def forward(self, images: Tensor, errors: Tensor, states: Tensor) -> Tensor:
        inputs = torch.cat([full_precision(images), full_precision(errors)], dim=1)
        if self.place is not None:
            inputs = self.read_window(inputs, full_precision(self.place(states)))
        return inputs.flatten(1).to(states)

    def read_window(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """Read inputs [B, C, height, width] through a grid with parameters [B, 5]."""
        filters = filter_banks(parameters, self.grid, *inputs.shape[-2:])
        if self.recorders:
            self.record(filters.window())
        return filters.read(inputs)


class Writer(RecordsAttention):
    """Write operation: compute the canvas update.

    Without a grid, the update covers the full canvas (equation 18 of Gregor et al. 2015); with a
    grid, a patch is written through filters computed from the decoder state (equations 21, 28
    and 29).

    Shapes:
        states [B, hidden] -> [B, C, height, width], in float32 or higher.
    """

    def __init__(self, *, grid: int | None, hidden: int, shape: Shape) -> None:
        super().__init__()
        channels, height, width = shape
        self.grid = grid or 0
        self.shape = shape
        self.place = GridParameters(hidden, N=grid, size=max(height, width)) if grid else None
        self.patch = nn.Linear(hidden, channels * (grid**2 if grid else height * width))

    def forward(self, states: Tensor) -> Tensor:
        patches: Tensor = full_precision(self.patch(states))
        if self.place is None:
            return patches.view(-1, *self.shape)
        patches = patches.view(-1, self.shape[0], self.grid, self.grid)
        return self.write_window(patches, full_precision(self.place(states)))

    def write_window(self, patches: Tensor, parameters: Tensor) -> Tensor:
        """Write patches [B, C, grid, grid] through a grid with parameters [B, 5]."""
        filters = filter_banks(parameters, self.grid, *self.shape[1:])
        if self.recorders:
            self.record(filters.window())
        return filters.write(patches)
