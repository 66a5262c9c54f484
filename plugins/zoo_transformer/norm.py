"""Normalisation of Transformer blocks."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import full_precision


class Norm:
    """Kind and place of the norms; builds the modules.

    Args:
        kind: 'layer' for LayerNorm, 'rms' for RMSNorm (no mean subtraction, no bias),
            'rms-plus-one' for RMSNorm with the weights 1 + w (Gemma).
        place: 'post' after each residual sum (the paper); 'pre' before each sublayer; 'output' on
            each sublayer's output, before the residual sum (OLMo 2); 'both' is 'pre' and 'output'
            with two norms (Gemma 2).
        eps: added to the variance or the mean square.
        embedding: whether the sum of embeddings and positions is normalised (BERT).
        final: whether the output of the last block is normalised; not for place 'post' if not set.
            torch.nn.Transformer has place 'post' and a final norm.
        bias: whether LayerNorm has a bias.
        first: whether there is a norm before the first sublayer of place 'pre', which normalised
            embeddings do not need (ModernBERT).
    """

    def __init__(
        self,
        *,
        kind: Literal["layer", "rms", "rms-plus-one"] = "layer",
        place: Literal["post", "pre", "output", "both"] = "post",
        eps: Annotated[float, Field(gt=0)] = 1e-5,
        embedding: bool = False,
        final: bool | None = None,
        bias: bool = True,
        first: bool = True,
    ) -> None:
        if not first and place != "pre":
            raise ZooError(f"first: false requires norms of place 'pre', not '{place}'")
        self.kind = kind
        self.place = place
        self.eps = eps
        self.embedding = embedding
        self.final = place != "post" if final is None else final
        self.bias = bias
        self.first = first

    def build(self, width: int) -> nn.Module:
        """Build a norm of this width."""
        if self.kind == "layer":
            return nn.LayerNorm(width, eps=self.eps, bias=self.bias)
        return (RMSNorm if self.kind == "rms" else RMSNormPlusOne)(width, self.eps)

    def build_output(self, width: int) -> nn.Module | None:
        """Build the second norm of a sublayer, on its output; None unless the place is 'both'."""
        return self.build(width) if self.place == "both" else None


class RMSNorm(nn.Module):
    """RMSNorm (Zhang and Sennrich 2019), computed in float32 for half precision inputs.

    Args:
        width: width of the last dimension.
        eps: added to the mean square.
    """

    weight_roles: ClassVar[Mapping[str, str]] = {"weight": "norm"}

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.width, self.eps = width, eps
        self.weight = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * self.normalise(x).to(x.dtype)

    def normalise(self, x: Tensor) -> Tensor:
        """Divide x by the root of its mean square."""
        inputs = full_precision(x)
        scaled: Tensor = inputs * torch.rsqrt(inputs.square().mean(-1, keepdim=True) + self.eps)
        return scaled

    def extra_repr(self) -> str:
        return f"{self.width}, eps={self.eps}"


class RMSNormPlusOne(RMSNorm):
    """RMSNorm with the weights 1 + w; it is computed in float32 and rounded once.

    Weights near 1 in half precision lose digits that w has.
    """

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return (self.normalise(x) * (1 + full_precision(self.weight))).to(x.dtype)
