"""The location policy."""

import math
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent, full_precision


class Policy(nn.Module):
    r"""Gaussian location policy: sample u from N(tanh(W h + b), std^2) and bound it to the image.

    The log-density is that of u before it is bounded, which keeps REINFORCE unbiased. Gradients
    flow through the log-density, not through the location.

    Paper: Mnih et al. 2014, sections 3 and 4; the tanh keeps the mean inside the image. The paper
    does not state how samples outside the image are treated; open implementations use both bounds.

    Args:
        input_dim: width of the states.
        std: standard deviation of u.
        bound: 'clamp' for locations clamp(u, -1, 1), 'tanh' for tanh(u).
        hidden: width of a ReLU layer before the mean; none if not set.

    Shapes:
        states [B, D] -> locations [B, 2], log-densities [B], both in float32 or higher, because
        half precision is coarser than a pixel. Noise [2] that is passed is used for all items
        instead of samples.
    """

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        std: FromParent[float],
        bound: Literal["clamp", "tanh"] = "clamp",
        hidden: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        super().__init__()
        self.std = std
        self.bound = bound
        self.hidden = nn.Linear(input_dim, hidden) if hidden else None
        self.mean = nn.Linear(hidden or input_dim, 2)

    @property
    def entropy(self) -> float:
        """Entropy of one location, which does not depend on the mean."""
        return 1 + math.log(2 * math.pi * self.std**2)

    def extra_repr(self) -> str:
        return f"std={self.std}, bound={self.bound}"

    def forward(
        self,
        states: Tensor,
        sample: bool,
        generator: torch.Generator | None = None,
        *,
        noise: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        features = states if self.hidden is None else self.hidden(states).relu()
        mean = full_precision(self.mean(features)).tanh()
        u = mean.detach()
        if sample:
            if noise is None:  # drawn in float32: the same in all dtypes
                device = generator.device if generator else u.device
                noise = torch.randn(
                    u.shape, dtype=torch.float32, device=device, generator=generator
                )
            u = u + self.std * noise.to(u)
        logs = -((u - mean) / self.std).square() / 2 - math.log(2 * math.pi * self.std**2) / 2
        return u.tanh() if self.bound == "tanh" else u.clamp(-1, 1), logs.sum(dim=-1)
