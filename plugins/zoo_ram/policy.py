"""The location policy: where to look next, drawn around what the state proposes."""

import math

import torch
from torch import Tensor, nn

from zoo.plugin import full_precision


class Policy(nn.Module):
    r"""Draws u from N(tanh(W h + b), std^2) on each axis, and looks at u clamped to the image.

    The log-density is that of u, so the clamping belongs to the world and REINFORCE stays
    unbiased. No gradient passes the place: the density alone learns.

    Paper: Mnih et al. 2014, sections 3 and 4; the mean is squashed so that it stays inside.

    Shapes:
        states [B, D] -> places [B, 2], log-densities [B]; both at least in float32, since half a
        precision would jump over pixels.
    """

    def __init__(self, *, input_dim: int, std: float) -> None:
        super().__init__()
        self.std = std
        self.mean = nn.Linear(input_dim, 2)

    @property
    def entropy(self) -> float:
        """Of one draw; the same wherever the mean is."""
        return 1 + math.log(2 * math.pi * self.std**2)

    def forward(
        self, states: Tensor, sample: bool, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        mean = full_precision(self.mean(states)).tanh()
        u = mean.detach()
        if sample:
            device = generator.device if generator else u.device
            noise = torch.randn(u.shape, dtype=u.dtype, device=device, generator=generator)
            u = u + self.std * noise.to(u.device)
        logs = -((u - mean) / self.std).square() / 2 - math.log(2 * math.pi * self.std**2) / 2
        return u.clamp(-1, 1), logs.sum(dim=-1)
