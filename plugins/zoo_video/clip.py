"""Clip embedding."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Backbone, Blueprint, Embedding, TensorSchema
from zoo_video.motion import Motion


class Clip(Embedding):
    r"""Clip embedding: pooled backbone features of each frame, with optional motion features.

    .. math:: v_f = [\mathrm{mean}_{xy}\, \mathrm{backbone}(I_f);\; \mathrm{motion}(I)_f]

    Paper: Yao et al. 2015, sections 2.1 and 3, where the inputs of the 3-D convolutions are
    histograms of gradients and optical flow; here they are the frames.

    Clips are padded at the end with frames of zeros. A frame of zeros before a non-zero frame is
    not padding. In training, batch normalisation in the backbone includes padding in its
    statistics.

    Args:
        backbone: computes the feature map of each frame, which is averaged.
        motion: 3-D convolutions over the frames; none if not set.
        height: frame height in pixels.
        width: frame width in pixels.
        channels: number of frame channels.

    Shapes:
        [B, F, channels, height, width] -> [B, F, dim].
    """

    name: ClassVar[str] = "clip"
    paper: ClassVar[str] = (
        "Yao et al. 2015, Describing Videos by Exploiting Temporal Structure, arXiv:1502.08029"
    )

    def __init__(
        self,
        *,
        backbone: Blueprint[Backbone],
        motion: Blueprint[Motion] | None = None,
        height: Annotated[int, Field(ge=1)] = 224,
        width: Annotated[int, Field(ge=1)] = 224,
        channels: Annotated[int, Field(ge=1)] = 3,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.height = height
        self.width = width
        self.size = (channels, height, width)
        self.backbone = backbone.build(channels=channels)
        self.motion = motion.build(channels=channels) if motion else None
        self.dim = self.backbone.output_dim
        if self.motion is not None:
            self.dim += self.motion.output_dim
            if min(height, width) < self.motion.min_size:
                raise ZooError(
                    f"frames have {height} x {width} pixels, but motion with "
                    f"{len(self.motion.layers)} layers needs at least "
                    f"{self.motion.min_size} x {self.motion.min_size}"
                )

    def forward(self, inputs: Tensor) -> Tensor:
        self._validate_shape(inputs)
        valid = self.mask(inputs)
        maps = self.backbone(inputs.flatten(0, 1))  # [B * F, D, h, w]
        vectors: Tensor = maps.mean(dim=(2, 3)).unflatten(0, inputs.shape[:2])
        if self.motion is not None:
            motion = self.motion(inputs.transpose(1, 2), valid)
            vectors = torch.cat([vectors, motion], dim=-1)
        return vectors * valid[..., None]

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", "S", *self.size), "float")

    def mask(self, inputs: Tensor) -> Tensor:
        """Return a mask that is True for frames up to the last non-zero one."""
        nonzero = (inputs != 0).flatten(2).any(dim=2)  # [B, F]
        return nonzero.flip(1).cumsum(dim=1).flip(1) > 0

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        weight = next(self.backbone.parameters())
        device = generator.device if generator else weight.device
        shape = (batch, length, *self.size)
        return torch.randn(shape, generator=generator, device=device).to(weight)

    def _validate_shape(self, clips: Tensor) -> None:
        channels, height, width = self.size
        if clips.dim() != 5 or clips.shape[2:] != self.size:
            raise ZooError(
                f"embedding '{self.name}' expects frames [B, F, {channels}, {height}, {width}], "
                f"but got {list(clips.shape)}"
            )
        if clips.shape[1] == 0:
            raise ZooError("clips have 0 frames, but at least 1 is needed")
