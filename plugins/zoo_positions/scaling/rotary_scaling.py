"""Base class of the scalings of rotary angles."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from zoo.plugin import FromParent


class RotaryScaling:
    r"""Frequencies of a rotary position; a subclass scales them for longer contexts.

    .. math:: \theta_i = \theta^{-2i/d}

    The frequencies are the same for all texts up to a length. They may not depend on the length in
    another way: keys in a cache would have been rotated with other frequencies.

    Args:
        dim: width that is rotated, d.

    Shapes:
        frequencies [d / 2] -> [d / 2].
    """

    magnitude: float = 1.0
    """Factor of rotated queries and keys."""
    max_length: int | None = None
    """Length of the longest texts that are scaled like this; None if all are."""
    longer: RotaryScaling | None = None
    """Scaling of longer texts."""

    def __init__(self, *, dim: FromParent[int]) -> None:
        self.dim = dim

    def frequencies(self, theta: float, device: torch.device) -> Tensor:
        """Return the angles of position 1, scaled: [d / 2], float64."""
        steps = torch.arange(0, self.dim, 2, device=device).double() / self.dim
        # A compiler computes an exponential once for all layers, but a power for each of them.
        return self.scale((-math.log(theta) * steps).exp(), theta)

    def scale(self, frequencies: Tensor, theta: float) -> Tensor:
        """Scale the frequencies [d / 2] of base theta."""
        return frequencies
