"""The location policy."""

import math

import torch
from torch import Tensor, nn

from zoo.plugin import full_precision


class Policy(nn.Module):
    r"""Gaussian location policy: sample u from N(tanh(W h + b), std^2) and clamp it to the image.

    The log-density is that of u before clamping, which keeps REINFORCE unbiased. Gradients flow
    through the log-density, not through the location.

    Paper: Mnih et al. 2014, sections 3 and 4; the tanh keeps the mean inside the image.

    Shapes:
        states [B, D] -> locations [B, 2], log-densities [B], both in float32 or higher, because
        half precision is coarser than a pixel.
    """

    def __init__(self, *, input_dim: int, std: float) -> None:
        super().__init__()
        self.std = std
        self.mean = nn.Linear(input_dim, 2)

    @property
    def entropy(self) -> float:
        """Entropy of one location, which does not depend on the mean."""
        return 1 + math.log(2 * math.pi * self.std**2)

    def extra_repr(self) -> str:
        return f"std={self.std}"

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
