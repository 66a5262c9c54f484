"""Gated feed-forward network with bounded hidden values."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import FromParent, Part
from zoo_transformer.feed_forward import FeedForward


class ClampedSwiGLU(FeedForward, Part):
    r"""SwiGLU with bounded inputs, and one added to the linear half.

    .. math:: \mathrm{FFN}(x) = W_2 \left( f(\min(W_g x, c)) \odot
        (\mathrm{clip}(W_1 x, -c, c) + 1) \right), \qquad f(z) = z\, \sigma(\alpha z)

    Paper: OpenAI 2025, gpt-oss, section 2.2.

    Args:
        dim: width of the states.
        hidden: width of the hidden layer.
        alpha: factor in the sigmoid.
        bound: bound of the inputs, c.
        bias: whether the linear layers have a bias.

    Shapes:
        [B, T, dim] -> [B, T, dim].
    """

    name: ClassVar[str] = "clamped-swiglu"
    paper: ClassVar[str] = "OpenAI 2025, gpt-oss-120b & gpt-oss-20b Model Card, arXiv:2508.10925"
    test_params: ClassVar[Mapping[str, Any]] = {"hidden": 6}

    def __init__(
        self,
        *,
        dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)],
        alpha: Annotated[float, Field(gt=0)] = 1.702,
        bound: Annotated[float, Field(gt=0)] = 7.0,
        bias: bool = True,
    ) -> None:
        super().__init__(dim=dim, hidden=hidden, activation="silu", gated=True, bias=bias)
        self.alpha, self.bound = alpha, bound

    def forward(self, x: Tensor) -> Tensor:
        assert self.gate is not None
        linear = self.up(x).clamp(-self.bound, self.bound)
        hidden = self.activate(self.gate(x).clamp(max=self.bound)) * (linear + 1)
        output: Tensor = self.down(hidden)
        return output

    def activate(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.alpha * x)

    def extra_repr(self) -> str:
        names = ("dim", "hidden", "alpha", "bound", "bias")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
