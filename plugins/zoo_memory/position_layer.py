"""Dense layer of a tagger."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent, Linear


class PositionLayer(nn.Module):
    r"""Dense layer at each position, optionally with a LayerNorm of its result.

    .. math:: h_t' = f(W h_t + b), \quad \text{or with a norm: } \mathrm{LN}(f(W h_t + b))

    Args:
        input_dim: width of the states.
        dim: width of the result; input_dim if not set.
        activation: f.
        bias: whether the layer has a bias.
        norm_eps: epsilon of the LayerNorm; none if not set.
        norm_bias: whether the LayerNorm has a bias.

    Shapes:
        [B, S, input_dim] -> [B, S, dim].
    """

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        dim: Annotated[int, Field(ge=1)] | None = None,
        activation: Literal["tanh", "relu", "gelu"] = "gelu",
        bias: bool = True,
        norm_eps: Annotated[float, Field(gt=0)] | None = None,
        norm_bias: bool = True,
    ) -> None:
        super().__init__()
        self.input_dim, self.output_dim, self.activation = input_dim, dim or input_dim, activation
        self.map = Linear(input_dim, self.output_dim, bias=bias)
        self.norm = None
        if norm_eps is not None:
            self.norm = nn.LayerNorm(self.output_dim, eps=norm_eps, bias=norm_bias)

    def forward(self, states: Tensor) -> Tensor:
        activate = {"tanh": torch.tanh, "relu": torch.relu, "gelu": nn.functional.gelu}
        result: Tensor = activate[self.activation](self.map(states))
        return result if self.norm is None else self.norm(result)
