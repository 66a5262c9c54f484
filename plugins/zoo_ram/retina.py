"""The retina: patches of an image at several resolutions around a location."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import FromParent, RecordsAttention, full_precision


class Retina(RecordsAttention):
    r"""Multi-resolution crop: squares of increasing size around a location, pooled to one size.

    .. math::
        \rho_{kij} = \frac{1}{r^{2k}} \int_{\mathrm{cell}_{kij}} x, \qquad
        \mathrm{cell}_{kij} = c + r^k \big( [j, j + 1] \times [i, i + 1] - \tfrac{g}{2} \big)

    Pixels are constant over their area; the image is padded with 0. Each cell is the mean over the
    r^k x r^k pixels it covers, fully or in part. If the corner of the square coincides with the
    corner of a pixel, this is crop and average pooling; otherwise the output changes linearly with
    the location, at the first scale as in bilinear interpolation, so it is differentiable with
    respect to the location. With crop 'pixel', the location is rounded down to the corner of a
    pixel, so the output is a crop and average pooling and has no gradient with respect to it.

    Paper: Mnih et al. 2014, sections 3 and 4, which do not state how a location between pixels is
    cropped; open implementations use whole pixels.

    Args:
        channels: number of image channels.
        size: side g of each square in cells, and of the smallest square in pixels.
        scales: number of squares.
        ratio: factor r between the sides of consecutive squares.
        crop: 'area' for squares at any position, 'pixel' for squares at whole pixels.

    Shapes:
        images [B, channels, height, width], locations [B, 2] -> [B, scales, channels, size, size].
        A location is (x, y): (-1, -1) is the top left corner, (1, 1) the bottom right one.
    """

    def __init__(
        self,
        *,
        channels: FromParent[int],
        size: Annotated[int, Field(ge=1)],
        scales: Annotated[int, Field(ge=1, le=16)] = 1,
        ratio: Annotated[int, Field(ge=2, le=16)] = 2,
        crop: Literal["area", "pixel"] = "area",
    ) -> None:
        super().__init__()
        self.channels = channels
        self.size = size
        self.scales = scales
        self.ratio = ratio
        self.crop = crop
        self.cells = [ratio**scale for scale in range(scales)]

    @property
    def output_dim(self) -> int:
        """Number of values in one glimpse."""
        return self.scales * self.channels * self.size**2

    def extra_repr(self) -> str:
        names = ("size", "scales", "ratio", "crop")
        return ", ".join([f"{self.channels}", *(f"{n}={getattr(self, n)}" for n in names)])

    def forward(self, images: Tensor, locations: Tensor) -> Tensor:
        self._validate_images(images)
        return self._squares(images, locations).to(images.dtype)

    def record_squares(self, images: Tensor, locations: Tensor) -> None:
        """Record the share of each pixel in the squares at locations, [B, scales, 1, pixels]."""
        if not self.recorders:
            return
        height, width = images.shape[-2:]
        shares = [
            self._coverage(locations[:, 1], height, cell).mean(dim=1)[:, :, None]
            * self._coverage(locations[:, 0], width, cell).mean(dim=1)[:, None]
            for cell in self.cells
        ]
        self.record(torch.stack(shares, dim=1).flatten(2)[:, :, None])

    @full_precision
    def _squares(self, images: Tensor, locations: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        squares = []
        for cell in self.cells:
            rows = self._coverage(locations[:, 1], height, cell).to(images)  # [B, g, height]
            columns = self._coverage(locations[:, 0], width, cell).to(images)  # [B, g, width]
            squares.append(rows[:, None] @ images @ columns[:, None].mT)  # [B, channels, g, g]
        return torch.stack(squares, dim=1)

    def _coverage(self, centre: Tensor, pixels: int, cell: int) -> Tensor:
        """Return the fraction of a cell that each pixel covers on one axis: [B, size, pixels]."""
        middle = (centre + 1) / 2 * pixels
        half = self.size * cell / 2
        if self.crop == "pixel":
            middle, half = middle.floor(), half // 1
        index = torch.arange(self.size, device=centre.device)
        start = (middle - half)[:, None, None] + (index * cell)[:, None]
        pixel = torch.arange(pixels, device=centre.device)
        overlap = torch.minimum(start + cell, pixel + 1) - torch.maximum(start, pixel)
        return overlap.clamp(min=0) / cell

    def _validate_images(self, images: Tensor) -> None:
        if not images.is_floating_point():
            raise ZooError(f"images have dtype {images.dtype}, but must be floating-point")
        if images.dim() != 4 or images.shape[1] != self.channels:
            raise ZooError(
                f"images have shape {list(images.shape)}, but the expected shape is "
                f"[batch, {self.channels}, height, width]"
            )
        height, width = images.shape[-2:]
        if height < self.size or width < self.size:
            raise ZooError(
                f"images have {height} x {width} pixels, but the retina needs at least "
                f"{self.size} x {self.size}"
            )
