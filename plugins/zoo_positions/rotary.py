"""Rotary position."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Blueprint, FromParent, Position
from zoo_positions.scaling.rotary_scaling import RotaryScaling
from zoo_positions.table import PositionTable


class Rotary(Position):
    r"""Rotary position embedding (RoPE) of queries and keys.

    .. math::
        (x_{i}, x_{j})_t \mapsto
        (x_i \cos t\theta_i - x_j \sin t\theta_i,\; x_i \sin t\theta_i + x_j \cos t\theta_i),
        \qquad \theta_i = \theta^{-2i/d}

    Inner products then depend on relative positions, so the scorer must be an inner product.

    With `part`, only the first dimensions of each head are rotated (GPT-NeoX).

    Paper: Su et al. 2021, equation 15.

    Args:
        head_dim: width of a head, of which the part d is rotated.
        theta: base of the angles.
        layout: pairs (i, i + d/2), as in transformers, or (2i, 2i + 1), as in the paper.
        part: fraction of the width of a head that is rotated.
        scaling: scaling of the angles for longer contexts; none if not set.

    Shapes:
        queries or keys [B, H, T, head_dim] -> [B, H, T, head_dim].
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
        part: Annotated[float, Field(gt=0, le=1)] = 1.0,
        scaling: Blueprint[RotaryScaling] | None = None,
    ) -> None:
        super().__init__()
        dim = int(round(head_dim * part, 6))
        if dim % 2 or dim == 0:
            what = "head_dim" if part == 1 else f"number of rotated dimensions, {part} of each head"
            raise ZooError(f"position 'rotary' requires an even {what}, not {dim}")
        self.head_dim, self.dim = head_dim, dim
        build = scaling.build if scaling else RotaryScaling
        self.scaling = build(dim=dim)
        self.theta = theta
        self.layout = layout
        self.table = PositionTable(self._cos_sin)
        self.longer: Rotary | None = None
        if self.scaling.longer is not None and self.scaling.max_length is not None:
            self.switch_lengths = (self.scaling.max_length,)
            self.longer = Rotary(head_dim=head_dim, theta=theta, layout=layout, part=part)
            self.longer.scaling = self.scaling.longer

    def for_length(self, length: int) -> Rotary:
        if self.longer is None or length <= self.switch_lengths[0]:
            return self
        return self.longer

    def rotate(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        cos, sin = self.table.rows(states.shape[2], offset, states)  # [T, d / 2]
        if self.dim == self.head_dim:
            return self._rotate(states, cos, sin)
        first, others = states[..., : self.dim], states[..., self.dim :]
        return torch.cat((self._rotate(first, cos, sin), others), dim=-1)

    def _rotate(self, states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        if self.layout == "halves":
            x, y = states.chunk(2, dim=-1)
            return torch.cat(_rotate(x, y, cos, sin), dim=-1)
        x, y = states[..., 0::2], states[..., 1::2]
        return torch.stack(_rotate(x, y, cos, sin), dim=-1).flatten(-2)

    def _cos_sin(self, t: Tensor) -> tuple[Tensor, Tensor]:
        angles = t[:, None] * self.scaling.frequencies(self.theta, t.device)  # [T, d / 2]
        return self.scaling.magnitude * angles.cos(), self.scaling.magnitude * angles.sin()


def _rotate(x: Tensor, y: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return torch.addcmul(x * cos, y, sin, value=-1), torch.addcmul(x * sin, y, cos)
