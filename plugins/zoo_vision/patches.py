"""Patch embedding of images."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Embedding, TensorSchema, rename_params


class Patches(Embedding):
    r"""Patch embedding: linear projection of non-overlapping patches, after a class token.

    .. math:: x_0 = c, \qquad x_k = W\, \mathrm{patch}_k + b

    Paper: Dosovitskiy et al. 2021, equation 1.

    Args:
        size: side of a patch in pixels.
        dim: width of a vector.
        channels: number of image channels.
        bias: whether the projection has a bias.
        class_token: whether to prepend a learned vector to the patches.
        extra_tokens: number of further learned vectors, after the class token: the distillation
            token (Touvron et al. 2021, section 4), or registers (Darcet et al. 2024).
        image_size: side of the images in pixels; images of any other size are rejected. Any size
            if None.

    Shapes:
        [B, channels, height, width] -> [B, height * width / size^2 (+ 1) + extra_tokens, dim].
    """

    name: ClassVar[str] = "patches"
    version: ClassVar[int] = 3
    paper: ClassVar[str] = (
        "Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, arXiv:2010.11929"
    )
    weight_roles: ClassVar[Mapping[str, str]] = {"whole": "embedding", "extra": "embedding"}

    def __init__(
        self,
        *,
        size: Annotated[int, Field(ge=1)],
        dim: Annotated[int, Field(ge=1)],
        channels: Annotated[int, Field(ge=1)] = 3,
        bias: bool = True,
        class_token: bool = True,
        extra_tokens: Annotated[int, Field(ge=0)] = 0,
        image_size: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        super().__init__()
        if image_size is not None and image_size % size:
            raise ZooError(f"image_size ({image_size}) must be divisible by size ({size})")
        self.size = size
        self.dim = dim
        self.channels = channels
        self.class_token = class_token
        self.extra_tokens = extra_tokens
        self.image_size = image_size
        self.map = nn.Conv2d(channels, dim, size, stride=size, bias=bias)
        self.whole = nn.Parameter(torch.empty(dim)) if class_token else None
        self.extra = nn.Parameter(torch.empty(extra_tokens, dim)) if extra_tokens else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Sample the class token and the further ones from N(0, 0.02^2)."""
        for token in (self.whole, self.extra):
            if token is not None:
                token.copy_(torch.randn_like(token) * 0.02)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, whole="class_token")
        return params, tensors

    def forward(self, inputs: Tensor) -> Tensor:
        self._num_patches(inputs)
        vectors: Tensor = self.map(inputs).flatten(2).transpose(1, 2)  # [B, S, dim]
        tokens = [token for token in (self.whole, self.extra) if token is not None]
        first = [token.expand(vectors.shape[0], -1, -1) for token in map(torch.atleast_2d, tokens)]
        return torch.cat([*first, vectors], dim=1)

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", self.channels, "H", "W"), "float", same_size=True)

    def mask(self, inputs: Tensor) -> Tensor:
        count = self._num_patches(inputs) + self.class_token + self.extra_tokens
        return torch.ones(inputs.shape[0], count, dtype=torch.bool, device=inputs.device)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        weight = self.map.weight
        count = max(length - self.class_token - self.extra_tokens, 1)
        sides = (self.size, self.size * count)
        if self.image_size is not None:
            sides = (self.image_size, self.image_size)
        shape = (batch, self.channels, *sides)
        device = generator.device if generator else weight.device
        return torch.randn(shape, generator=generator, device=device).to(weight)

    def _num_patches(self, images: Tensor) -> int:
        _, channels, height, width = images.shape
        if channels != self.channels or height % self.size or width % self.size:
            raise ZooError(
                f"images have {channels} channels and {height} x {width} pixels, but embedding "
                f"'{self.name}' expects {self.channels} channels and sides divisible by {self.size}"
            )
        if self.image_size is not None and (height, width) != (self.image_size,) * 2:
            raise ZooError(
                f"images have {height} x {width} pixels, but embedding '{self.name}' expects "
                f"{self.image_size} x {self.image_size}; resize them"
            )
        return (height // self.size) * (width // self.size)
