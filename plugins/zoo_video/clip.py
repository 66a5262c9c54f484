"""Clip embedding: one vector a frame, of what is seen and what moves."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Backbone, Blueprint, Embedding
from zoo_video.motion import Motion


class Clip(Embedding):
    r"""What a backbone sees in each frame, beside what three-dimensional convolutions see move.

    .. math:: v_f = [\mathrm{mean}_{xy}\, \mathrm{backbone}(I_f);\; \mathrm{motion}(I)_f]

    Paper: Yao et al. 2015, sections 2.1 and 3, where the convolutions over time read histograms
    of gradients and flow; here they read the frames themselves.

    A clip shorter than its batch ends in frames that are zero in every pixel: they are padding.
    A black frame that others follow is a frame. In training, a backbone's batch norm counts the
    padding in its statistics.

    Args:
        backbone: sees single frames; its map is averaged.
        motion: the convolutions over time; none if not set.
        height: of the frames, in pixels.
        width: of the frames, in pixels.
        channels: of the frames.

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
        self.size = (channels, height, width)
        self.backbone = backbone.build(channels=channels)
        self.motion = motion.build(channels=channels) if motion else None
        self.dim = self.backbone.output_dim
        if self.motion is not None:
            self.dim += self.motion.output_dim
            if min(height, width) < self.motion.least:
                raise ZooError(
                    f"frames of {height} x {width} pixels are too small for motion, whose "
                    f"{len(self.motion.layers)} layers need at least {self.motion.least}"
                )

    def forward(self, inputs: Tensor) -> Tensor:
        self._validate_shape(inputs)
        real = self.mask(inputs)
        maps = self.backbone(inputs.flatten(0, 1))  # [B * F, D, h, w]
        vectors: Tensor = maps.mean(dim=(2, 3)).unflatten(0, inputs.shape[:2])
        if self.motion is not None:
            moves = self.motion(inputs.transpose(1, 2), real)
            vectors = torch.cat([vectors, moves], dim=-1)
        return vectors * real[..., None]

    def mask(self, inputs: Tensor) -> Tensor:
        """A frame is real if it, or one after it, is not all zero."""
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
                f"embedding 'clip' reads frames [B, F, {channels}, {height}, {width}], "
                f"not {list(clips.shape)}"
            )
        if clips.shape[1] == 0:
            raise ZooError("a clip needs at least one frame, and these have none")
