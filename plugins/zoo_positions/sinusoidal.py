"""Sinusoidal position."""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import FromParent, Position
from zoo_positions.table import PositionTable


class Sinusoidal(Position):
    r"""Sinusoidal absolute position embedding.

    .. math::
        PE_{t, 2i} = \sin(t / \theta^{e_i}), \qquad PE_{t, 2i+1} = \cos(t / \theta^{e_i}), \qquad
        e_i = \frac{2i}{d} \text{ or, tensor2tensor, } \frac{i}{d/2 - 1}

    Paper: Vaswani et al. 2017, section 3.5, with the exponents 2i/d. The authors' code,
    tensor2tensor, and fairseq use the other exponents and the layout 'halves'; fairseq counts from
    the padding token's ID plus 1.

    Args:
        dim: width of the states, d.
        theta: base of the frequencies; wavelengths are up to 2 pi theta.
        layout: sines and cosines interleaved (the paper), or all sines before all cosines.
        exponents: 'paper' or 'tensor2tensor'.
        start: position of the first token.

    Shapes:
        [B, T, d] -> [B, T, d].
    """

    name: ClassVar[str] = "sinusoidal"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"

    def __init__(
        self,
        *,
        dim: FromParent[int],
        theta: Annotated[float, Field(gt=1)] = 10000.0,
        layout: Literal["interleaved", "halves"] = "interleaved",
        exponents: Literal["paper", "tensor2tensor"] = "paper",
        start: Annotated[int, Field(ge=0)] = 0,
    ) -> None:
        super().__init__()
        if dim % 2:
            raise ZooError(f"position 'sinusoidal' requires an even dim, not {dim}")
        self.dim = dim
        self.theta = theta
        self.layout = layout
        self.exponents = exponents
        self.start = start
        self.table = PositionTable(self._waves)

    def add(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        (waves,) = self.table.rows(states.shape[1], offset + self.start, states)  # [..., T, d]
        return states + waves

    def _waves(self, t: Tensor) -> tuple[Tensor]:
        count = self.dim // 2
        divisor = count if self.exponents == "paper" else max(count - 1, 1)
        exponents = torch.arange(count, device=t.device).double() / divisor
        angles = t[..., None] * self.theta**-exponents  # [..., T, d / 2]
        waves = [angles.sin(), angles.cos()]
        if self.layout == "interleaved":
            return (torch.stack(waves, dim=-1).flatten(-2),)
        return (torch.cat(waves, dim=-1),)
