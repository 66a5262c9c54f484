"""How the blocks of a Transformer are normalised."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import full_precision


class Norm:
    """Which normalisation, and where it stands; makes the modules for a width.

    Args:
        kind: 'layer' subtracts the mean and has a bias, 'rms' does neither.
        place: 'post' after each residual sum (the paper), 'pre' before each part of a block,
            with one more after the last block.
        eps: added under the root.
        embedding: one more right after the positions are added (BERT).
    """

    def __init__(
        self,
        *,
        kind: Literal["layer", "rms"] = "layer",
        place: Literal["post", "pre"] = "post",
        eps: Annotated[float, Field(gt=0)] = 1e-5,
        embedding: bool = False,
    ) -> None:
        self.kind = kind
        self.pre = place == "pre"
        self.eps = eps
        self.embedding = embedding

    def make(self, width: int) -> nn.Module:
        """A normalisation of this width."""
        if self.kind == "layer":
            return nn.LayerNorm(width, eps=self.eps)
        return RMSNorm(width, self.eps)


class RMSNorm(nn.Module):
    r"""Divides by the root of the mean square, in float32 whatever comes in (Zhang 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = full_precision(x)
        scaled = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)
        return self.weight * scaled.to(x.dtype)
