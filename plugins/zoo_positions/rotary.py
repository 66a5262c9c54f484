"""Rotary position."""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import FromParent, Position
from zoo_positions.table import PositionTable


class Rotary(Position):
    r"""Rotary position embedding (RoPE) of queries and keys.

    .. math::
        (x_{i}, x_{j})_t \mapsto
        (x_i \cos t\theta_i - x_j \sin t\theta_i,\; x_i \sin t\theta_i + x_j \cos t\theta_i),
        \qquad \theta_i = \theta^{-2i/d}

    Inner products then depend on relative positions, so the scorer must be an inner product.

    Paper: Su et al. 2021, equation 15.

    Args:
        head_dim: width of a head, d.
        theta: base of the angles.
        layout: pairs (i, i + d/2), as in transformers, or (2i, 2i + 1), as in the paper.

    Shapes:
        queries or keys [B, H, T, d] -> [B, H, T, d].
    """

    name: ClassVar[str] = "rotary"
    paper: ClassVar[str] = "Su et al. 2021, RoFormer, arXiv:2104.09864"
    is_rotary = True

    def __init__(
        self,
        *,
        head_dim: FromParent[int],
        theta: Annotated[float, Field(gt=1)] = 10000.0,
        layout: Literal["halves", "interleaved"] = "halves",
    ) -> None:
        super().__init__()
        if head_dim % 2:
            raise ZooError(f"position 'rotary' requires an even head_dim, not {head_dim}")
        self.head_dim = head_dim
        self.theta = theta
        self.layout = layout
        self.table = PositionTable(self._cos_sin)

    def rotate(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        cos, sin = self.table.rows(states.shape[2], offset, states)  # [T, d / 2]
        if self.layout == "halves":
            x, y = states.chunk(2, dim=-1)
            return torch.cat(_rotate(x, y, cos, sin), dim=-1)
        x, y = states[..., 0::2], states[..., 1::2]
        return torch.stack(_rotate(x, y, cos, sin), dim=-1).flatten(-2)

    def _cos_sin(self, t: Tensor) -> tuple[Tensor, Tensor]:
        steps = torch.arange(0, self.head_dim, 2, device=t.device).double() / self.head_dim
        angles = t[:, None] * self.theta**-steps  # [T, d / 2]
        return angles.cos(), angles.sin()


def _rotate(x: Tensor, y: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return torch.addcmul(x * cos, y, sin, value=-1), torch.addcmul(x * sin, y, cos)
