"""YaRN scaling of rotary angles."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import FromParent, Part
from zoo_positions.scaling.rotary_scaling import RotaryScaling


class YarnScaling(RotaryScaling, Part):
    r"""YaRN: low frequencies are divided by a factor, and queries and keys are longer.

    .. math::
        \theta_i' = (1 - \gamma_i) \theta_i / s + \gamma_i \theta_i, \qquad
        \gamma_i = 1 - \mathrm{clip}\left(\frac{i - a}{b - a}, 0, 1\right), \qquad
        m = 0.1 \ln s + 1

    a and b are the indices whose frequencies rotate `fast` and `slow` times in a context of the
    original length; queries and keys are multiplied by m.

    Paper: Peng et al. 2024, definition 2 and section 3.4, with the ramp over indices and their
    rounding of the authors' code.

    Args:
        dim: width that is rotated.
        factor: divisor of low frequencies, s.
        original_length: length of the contexts before the extension.
        fast: rotations of the frequencies above which none is divided.
        slow: rotations of the frequencies below which all are divided.
        magnitude: factor of queries and keys; m if not set.
        truncate: whether a is rounded down and b up.

    Shapes:
        frequencies [dim / 2] -> [dim / 2].
    """

    name: ClassVar[str] = "yarn"
    paper: ClassVar[str] = (
        "Peng et al. 2024, YaRN: Efficient Context Window Extension of Large Language Models, "
        "arXiv:2309.00071"
    )
    test_params: ClassVar[Mapping[str, Any]] = {"factor": 4.0, "original_length": 64}

    def __init__(
        self,
        *,
        dim: FromParent[int],
        factor: Annotated[float, Field(gt=0)],
        original_length: Annotated[int, Field(ge=1)],
        fast: Annotated[float, Field(gt=0)] = 32.0,
        slow: Annotated[float, Field(gt=0)] = 1.0,
        magnitude: Annotated[float, Field(gt=0)] | None = None,
        truncate: bool = True,
    ) -> None:
        super().__init__(dim=dim)
        self.factor, self.original_length = factor, original_length
        self.fast, self.slow, self.truncate = fast, slow, truncate
        default = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
        self.magnitude = default if magnitude is None else magnitude

    def scale(self, frequencies: Tensor, theta: float) -> Tensor:
        first, last = self._index(self.fast, theta), self._index(self.slow, theta)
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, self.dim - 1)
        last = last + 0.001 if first == last else last
        indices = torch.arange(len(frequencies), device=frequencies.device).double()
        divided = ((indices - first) / (last - first)).clamp(0, 1)
        return divided * frequencies / self.factor + (1 - divided) * frequencies

    def _index(self, rotations: float, theta: float) -> float:
        """Return the index, not rounded, of the frequency with this number of rotations."""
        periods = self.original_length / (2 * math.pi * rotations)
        return self.dim * math.log(periods) / (2 * math.log(theta))
