"""Scaling of rotary angles in Llama 3.1."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import FromParent, Part
from zoo_positions.scaling.rotary_scaling import RotaryScaling


class Llama3Scaling(RotaryScaling, Part):
    r"""Low frequencies are divided by a factor, high frequencies are kept.

    .. math::
        \theta_i' = (1 - \gamma_i) \theta_i / s + \gamma_i \theta_i, \qquad
        \gamma_i = \mathrm{clip}\left(\frac{r_i - l}{h - l}, 0, 1\right), \qquad
        r_i = \frac{L \theta_i}{2 \pi}

    Paper: Grattafiori et al. 2024; the formula is that of the authors' code.

    Args:
        dim: width that is rotated.
        factor: divisor of low frequencies, s.
        original_length: length of the contexts before the extension, L.
        low: frequencies with fewer rotations in a context are low, l.
        high: frequencies with more rotations in a context are high, h.

    Shapes:
        frequencies [dim / 2] -> [dim / 2].
    """

    name: ClassVar[str] = "llama3"
    paper: ClassVar[str] = "Grattafiori et al. 2024, The Llama 3 Herd of Models, arXiv:2407.21783"
    test_params: ClassVar[Mapping[str, Any]] = {"factor": 8.0, "original_length": 16}

    def __init__(
        self,
        *,
        dim: FromParent[int],
        factor: Annotated[float, Field(gt=0)],
        original_length: Annotated[int, Field(ge=1)],
        low: Annotated[float, Field(gt=0)] = 1.0,
        high: Annotated[float, Field(gt=0)] = 4.0,
    ) -> None:
        super().__init__(dim=dim)
        if high <= low:
            raise ZooError(f"high ({high}) must be above low ({low})")
        self.factor, self.original_length = factor, original_length
        self.low, self.high = low, high

    def scale(self, frequencies: Tensor, theta: float) -> Tensor:
        rotations = self.original_length * frequencies / (2 * math.pi)
        kept = ((rotations - self.low) / (self.high - self.low)).clamp(0, 1)
        return (1 - kept) * frequencies / self.factor + kept * frequencies
