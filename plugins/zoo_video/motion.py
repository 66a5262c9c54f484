"""Motion features of a clip: 3-D convolutions over its frames."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent


class Motion(nn.Module):
    r"""3-D convolutions over time and space, max-pooled to one vector per frame.

    .. math:: m_f = \max_{x,y} (g_n \circ \dots \circ g_1)(V)_{fxy}, \qquad
        g(v) = \mathrm{pool}(\mathrm{relu}(W * v + b))

    Pooling halves height and width, not time, so each frame has its own vector. Every layer sets
    padding frames to 0, so the output does not depend on padding.

    Args:
        channels: number of frame channels.
        layers: number of output channels of each layer.
        kernel: kernel size in space and time; must be odd.

    Shapes:
        frames [B, channels, F, height, width], mask [B, F] -> [B, F, output_dim].
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
            raise ZooError("layers is empty; at least one layer is needed")
        if kernel % 2 == 0:
            raise ZooError(f"kernel ({kernel}) must be odd")
        widths = [channels, *layers]
        self.layers = nn.ModuleList(
            nn.Conv3d(inputs, outputs, kernel, padding=kernel // 2)
            for inputs, outputs in pairwise(widths)
        )
        self.min_size = 2 ** len(layers)
        self.output_dim = widths[-1]

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        valid = mask[:, None, :, None, None]
        for layer in self.layers:
            frames = F.max_pool3d(F.relu(layer(frames)), (1, 2, 2)) * valid
        return frames.amax(dim=(3, 4)).transpose(1, 2)
