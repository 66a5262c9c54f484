"""Patch embedding: an image as a sequence of its squares."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Embedding


class Patches(Embedding):
    r"""Cuts an image into squares and maps each to a vector; a first vector stands for the whole.

    .. math:: x_0 = c, \qquad x_k = W\, \mathrm{patch}_k + b

    Paper: Dosovitskiy et al. 2021, equation 1.

    Args:
        size: side of a patch, in pixels.
        dim: width of a vector.
        channels: of the image.
        whole: put a learned vector before the patches, for a classifier to read.

    Shapes:
        [B, channels, height, width] -> [B, height * width / size^2 (+ 1), dim].
    """

    name: ClassVar[str] = "patches"
    paper: ClassVar[str] = (
        "Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, arXiv:2010.11929"
    )

    def __init__(
        self,
        *,
        size: Annotated[int, Field(ge=1)],
        dim: Annotated[int, Field(ge=1)],
        channels: Annotated[int, Field(ge=1)] = 3,
        whole: bool = True,
    ) -> None:
        super().__init__()
        self.size = size
        self.dim = dim
        self.channels = channels
        self.map = nn.Conv2d(channels, dim, size, stride=size)
        self.whole = nn.Parameter(torch.randn(dim) * 0.02) if whole else None

    def forward(self, inputs: Tensor) -> Tensor:
        self._num_patches(inputs)
        vectors: Tensor = self.map(inputs).flatten(2).transpose(1, 2)  # [B, S, dim]
        if self.whole is None:
            return vectors
        first = self.whole.expand(vectors.shape[0], 1, -1)
        return torch.cat([first, vectors], dim=1)

    def mask(self, inputs: Tensor) -> Tensor:
        count = self._num_patches(inputs) + (self.whole is not None)
        return torch.ones(inputs.shape[0], count, dtype=torch.bool, device=inputs.device)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        weight = self.map.weight
        count = max(length - (self.whole is not None), 1)
        shape = (batch, self.channels, self.size, self.size * count)
        device = generator.device if generator else weight.device
        return torch.randn(shape, generator=generator, device=device).to(weight)

    def _num_patches(self, images: Tensor) -> int:
        _, channels, height, width = images.shape
        if channels != self.channels or height % self.size or width % self.size:
            raise ZooError(
                f"images of {channels} channels and {height} x {width} pixels cannot be cut into "
                f"patches of {self.channels} channels and {self.size} x {self.size}"
            )
        return (height // self.size) * (width // self.size)
