"""Feed-forward network of a Transformer block."""

from typing import Annotated, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent, Linear, has_hooks, split_bias, why_not_triton


class FeedForward(nn.Module):
    r"""Position-wise feed-forward network, optionally gated.

    .. math:: \mathrm{FFN}(x) = W_2\, f(W_1 x), \qquad \text{or gated: } W_2 (f(W_g x) \odot W_1 x)

    Args:
        dim: width of the states.
        hidden: width of the hidden layer.
        activation: f; 'gelu-tanh' is the tanh approximation of GELU used by GPT-2.
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
        activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "relu",
        gated: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.dim, self.hidden, self.activation, self.gated = dim, hidden, activation, gated
        self.bias = bias
        self.up = Linear(dim, hidden, bias=bias)
        self.gate = Linear(dim, hidden, bias=bias) if gated else None
        self.down = Linear(hidden, dim, bias=bias)

    def forward(
        self, x: Tensor, *, skip_bias: bool = False
    ) -> Tensor | tuple[Tensor, Tensor | None]:
        """Process x; with `skip_bias` also return the bias that was not added, see `split_bias`."""
        hidden = self._hidden(x)
        if skip_bias:
            return split_bias(hidden, self.down)
        output: Tensor = self.down(hidden)
        return output

    def extra_repr(self) -> str:
        names = ("dim", "hidden", "activation", "gated", "bias")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    def _hidden(self, x: Tensor) -> Tensor:
        """Compute the hidden layer, with ReLU in one kernel if it is possible."""
        if self.gate is not None:
            gated: Tensor = self._activate(self.gate(x)) * self.up(x)
            return gated
        if self._why_not_fused(x) is not None:
            return self._activate(self.up(x))
        from zoo_transformer.kernels.relu_linear import relu_linear

        return relu_linear(x, self.up.weight, self.up.bias)

    def _why_not_fused(self, x: Tensor) -> str | None:
        if self.activation != "relu" or not self.bias:
            return "the activation is not ReLU, or there is no bias"
        if has_hooks(self.up) or type(self.up) not in (nn.Linear, Linear):
            return "the linear layer has hooks or is not torch's"
        return why_not_triton(x, self.up.weight)

    def _activate(self, x: Tensor) -> Tensor:
        if self.activation == "relu":
            return F.relu(x)
        if self.activation == "silu":
            return F.silu(x)
        return F.gelu(x, approximate="tanh" if self.activation == "gelu-tanh" else "none")
