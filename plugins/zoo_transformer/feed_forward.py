"""Feed-forward network of a Transformer block."""

from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent, Linear

Activation = Literal["relu", "gelu", "gelu-tanh", "quick-gelu", "silu"]


class FeedForward(nn.Module):
    r"""Position-wise feed-forward network, optionally gated.

    .. math:: \mathrm{FFN}(x) = W_2\, f(W_1 x), \qquad \text{or gated: } W_2 (f(W_g x) \odot W_1 x)

    Args:
        dim: width of the states.
        hidden: width of the hidden layer.
        activation: f; 'gelu-tanh' is the tanh approximation of GELU used by GPT-2, 'quick-gelu' is
            x sigmoid(1.702 x), used by CLIP.
        gated: whether to use a gate; 'silu' with a gate is SwiGLU (Shazeer 2020).
        bias: whether the linear layers have a bias.

    Shapes:
        [B, T, dim] -> [B, T, dim].
    """

    def __init__(
        self,
        *,
        dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)],
        activation: Activation = "relu",
        gated: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.dim, self.hidden, self.gated, self.bias = dim, hidden, gated, bias
        self.activation: Activation = activation
        self.up = Linear(dim, hidden, bias=bias)
        self.gate = Linear(dim, hidden, bias=bias) if gated else None
        self.down = Linear(hidden, dim, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            hidden = self.activate(self.up(x))
        else:
            hidden = self.activate(self.gate(x)) * self.up(x)
        output: Tensor = self.down(hidden)
        return output

    def extra_repr(self) -> str:
        names = ("dim", "hidden", "activation", "gated", "bias")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    def activate(self, x: Tensor) -> Tensor:
        """Compute f(x)."""
        return activate(x, self.activation)


def activate(x: Tensor, name: Activation) -> Tensor:
    """Compute the activation of this name."""
    if name == "relu":
        return F.relu(x)
    if name == "silu":
        return F.silu(x)
    if name == "quick-gelu":
        return x * torch.sigmoid(1.702 * x)
    return F.gelu(x, approximate="tanh" if name == "gelu-tanh" else "none")
