"""ALiBi position."""

import math
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import FromParent, Position
from zoo_positions.device_constant import DeviceConstant
from zoo_positions.indices import indices


class ALiBi(Position):
    r"""ALiBi: bias proportional to the distance between query and key, with a slope per head.

    .. math:: e_{ts} \leftarrow e_{ts} - m_h |t - s|, \qquad m_h = 2^{-8h/H}

    Paper: Press et al. 2022, section 3; if H is not a power of two, the slopes are those of
    the authors' code.

    Args:
        heads: number of heads, H.

    Shapes:
        bias [H, T, S].
    """

    name: ClassVar[str] = "alibi"
    paper: ClassVar[str] = "Press et al. 2022, Train Short, Test Long, arXiv:2108.12409"

    def __init__(self, *, heads: FromParent[int]) -> None:
        super().__init__()
        self.heads = heads
        self.slopes = DeviceConstant(_slopes(heads))

    def bias(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> Tensor | None:
        distance = indices(T, offset, device)[:, None] - torch.arange(S, device=device)
        slopes = self.slopes.tensor(distance, torch.get_default_dtype())
        return -slopes[:, None, None] * distance.abs()


def _slopes(heads: int) -> list[float]:
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    extra = [2 ** (-8 * (h + 1) / (2 * power)) for h in range(0, 2 * power, 2)]
    return slopes + extra[: heads - power]
