"""The feed-forward part of a Transformer block."""

from typing import Annotated, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent


class FeedForward(nn.Module):
    r"""Widens each position, bends it, and narrows it again.

    .. math:: \mathrm{FFN}(x) = W_2\, f(W_1 x), \qquad \text{or gated: } W_2 (f(W_g x) \odot W_1 x)

    Args:
        dim: width of the states.
        hidden: width in between.
        activation: f; 'gelu-tanh' is the approximation that GPT-2 uses.
        gated: with a gate; silu and gated is SwiGLU (Shazeer 2020).
        bias: whether the maps have one.

    Shapes:
        [B, T, dim] -> [B, T, dim].
    """

    def __init__(
        self,
        *,
        dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)],
        activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "relu",
        gated: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.up = nn.Linear(dim, hidden, bias=bias)
        self.gate = nn.Linear(dim, hidden, bias=bias) if gated else None
        self.down = nn.Linear(hidden, dim, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            inner = self._activate(self.up(x))
        else:
            inner = self._activate(self.gate(x)) * self.up(x)
        narrowed: Tensor = self.down(inner)
        return narrowed

    def _activate(self, x: Tensor) -> Tensor:
        if self.activation == "relu":
            return F.relu(x)
        if self.activation == "silu":
            return F.silu(x)
        return F.gelu(x, approximate="tanh" if self.activation == "gelu-tanh" else "none")
