"""Three-dimensional convolutions: what moves around each frame."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent


class Motion(nn.Module):
    r"""Convolutions over time and space; one vector a frame, of the strongest answers in it.

    .. math:: m_f = \max_{x,y} (g_n \circ \dots \circ g_1)(V)_{fxy}, \qquad
        g(v) = \mathrm{pool}(\mathrm{relu}(W * v + b))

    Pools halve the sides, never the time, so that each frame keeps a vector of its own. What a
    layer says of a frame that is not real is nothing, so that such frames could as well be absent.

    Args:
        channels: of the frames.
        layers: depth of each layer, from the frames up.
        kernel: size of the kernels, each way and in time; odd.

    Shapes:
        frames [B, channels, F, height, width], real [B, F] -> [B, F, depth of the last layer].
    """

    def __init__(
        self,
        *,
        channels: FromParent[int],
        layers: Sequence[Annotated[int, Field(ge=1)]],
        kernel: Annotated[int, Field(ge=1)] = 3,
    ) -> None:
        super().__init__()
        if not layers:
            raise ZooError("layers: at least one is needed")
        if kernel % 2 == 0:
            raise ZooError(f"kernel ({kernel}) must be odd, so that it has a middle frame")
        depths = [channels, *layers]
        self.layers = nn.ModuleList(
            nn.Conv3d(before, after, kernel, padding=kernel // 2)
            for before, after in pairwise(depths)
        )
        self.least = 2 ** len(layers)
        self.output_dim = depths[-1]

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        frame_mask = real[:, None, :, None, None]
        for layer in self.layers:
            frames = F.max_pool3d(F.relu(layer(frames)), (1, 2, 2)) * frame_mask
        return frames.amax(dim=(3, 4)).transpose(1, 2)
