"""Layer before the output of a Transformer decoder."""

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent, Linear
from zoo_transformer.feed_forward import Activation, activate


class OutputTransform(nn.Module):
    r"""Dense layer, activation and LayerNorm before the logits (Devlin et al. 2019).

    .. math:: h' = \mathrm{LN}(f(W h + b))

    Args:
        dim: width of the states.
        activation: f.
        eps: epsilon of the norm.

    Shapes:
        [B, T, dim] -> [B, T, dim].
    """

    def __init__(
        self,
        *,
        dim: FromParent[int],
        activation: Activation = "gelu",
        eps: Annotated[float, Field(gt=0)] = 1e-12,
    ) -> None:
        super().__init__()
        self.activation: Activation = activation
        self.map = Linear(dim, dim)
        self.norm = nn.LayerNorm(dim, eps=eps)

    def forward(self, states: Tensor) -> Tensor:
        normed: Tensor = self.norm(activate(self.map(states), self.activation))
        return normed

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"
