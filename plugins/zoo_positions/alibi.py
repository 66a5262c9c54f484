"""ALiBi: the farther, the less."""

import math
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import FromParent, Position
from zoo_positions.indices import indices


class ALiBi(Position):
    r"""Lowers a score by the distance between query and key, each head at a slope of its own.

    .. math:: e_{ts} \leftarrow e_{ts} - m_h |t - s|, \qquad m_h = 2^{-8h/H}

    Paper: Press et al. 2022, section 3; where H is no power of two, slopes are filled up as in
    the authors' code.

    Args:
        heads: how many heads there are, H.

    Shapes:
        bias [H, T, S].
    """

    name: ClassVar[str] = "alibi"
    paper: ClassVar[str] = "Press et al. 2022, Train Short, Test Long, arXiv:2108.12409"

    def __init__(self, *, heads: FromParent[int]) -> None:
        super().__init__()
        self.slopes = _slopes(heads)

    def bias(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> Tensor | None:
        distance = indices(T, offset, device)[:, None] - torch.arange(S, device=device)
        slopes = torch.tensor(self.slopes, device=device)
        return -slopes[:, None, None] * distance.abs()


def _slopes(heads: int) -> list[float]:
    whole = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (h + 1) / whole) for h in range(whole)]
    between = [2 ** (-8 * (h + 1) / (2 * whole)) for h in range(0, 2 * whole, 2)]
    return slopes + between[: heads - whole]
