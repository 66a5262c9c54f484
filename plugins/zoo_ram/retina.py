"""The retina: sharp where it looks, coarser around."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent


class Retina(nn.Module):
    r"""Cuts squares out around one place, each larger than the last, all shrunk to one size.

    .. math::
        \rho_{kij} = \frac{1}{r^{2k}} \int_{\mathrm{cell}_{kij}} x, \qquad
        \mathrm{cell}_{kij} = c + r^k \big( [j, j + 1] \times [i, i + 1] - \tfrac{g}{2} \big)

    A pixel is a square of one colour, and outside of the image all is 0. Each cell is the mean
    over the r^k x r^k pixels it covers, in part or whole: where the square's corner falls on a
    pixel's, that is crop and average pooling; in between it changes linearly with the place, at
    the first scale as bilinear interpolation does. So gradients reach the place, too.

    Paper: Mnih et al. 2014, sections 3 and 4.

    Args:
        channels: of the images.
        size: side g of every square in cells, and of the smallest in pixels.
        scales: how many squares there are.
        ratio: r, by how much a square is larger than the one before.

    Shapes:
        images [B, channels, height, width], places [B, 2] -> [B, scales, channels, size, size]. A
        place is (x, y): (-1, -1) the top left corner, (1, 1) the bottom right one.
    """

    def __init__(
        self,
        *,
        channels: FromParent[int],
        size: Annotated[int, Field(ge=1)],
        scales: Annotated[int, Field(ge=1)] = 1,
        ratio: Annotated[int, Field(ge=2)] = 2,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.size = size
        self.cells = [ratio**scale for scale in range(scales)]

    @property
    def output_dim(self) -> int:
        """Numbers in one glimpse."""
        return len(self.cells) * self.channels * self.size**2

    def forward(self, images: Tensor, locations: Tensor) -> Tensor:
        self._validate_images(images)
        height, width = images.shape[-2:]
        squares = []
        for cell in self.cells:
            rows = self._coverage(locations[:, 1], height, cell).to(images)[
                :, None
            ]  # [B, 1, g, height]
            columns = self._coverage(locations[:, 0], width, cell).to(images)[:, None]
            squares.append(rows @ images @ columns.mT)  # [B, channels, g, g]
        return torch.stack(squares, dim=1)

    def _coverage(self, centre: Tensor, pixels: int, cell: int) -> Tensor:
        """How much of a cell each pixel covers along one axis: [B] -> [B, size, pixels]."""
        index = torch.arange(self.size, device=centre.device) - self.size / 2
        start = ((centre + 1) / 2 * pixels)[:, None, None] + (index * cell)[:, None]
        pixel = torch.arange(pixels, device=centre.device)
        shared = torch.minimum(start + cell, pixel + 1) - torch.maximum(start, pixel)
        return shared.clamp(min=0) / cell

    def _validate_images(self, images: Tensor) -> None:
        if not images.is_floating_point():
            raise ZooError(f"images are of {images.dtype}, but should be floating-point numbers")
        if images.dim() != 4 or images.shape[1] != self.channels:
            raise ZooError(
                f"images are {list(images.shape)}, but should be "
                f"[batch, {self.channels} channels, height, width]"
            )
        height, width = images.shape[-2:]
        if height < self.size or width < self.size:
            raise ZooError(
                f"images of {height} x {width} pixels are smaller than the glimpse's smallest "
                f"square of {self.size} x {self.size}"
            )
