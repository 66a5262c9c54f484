"""Linear scaling of rotary angles."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import FromParent, Part
from zoo_positions.scaling.rotary_scaling import RotaryScaling


class LinearScaling(RotaryScaling, Part):
    r"""Position interpolation: all frequencies are divided by a factor.

    .. math:: \theta_i' = \theta_i / s

    Paper: Chen et al. 2023, equation 4.

    Args:
        dim: width that is rotated.
        factor: how much longer contexts become, s.

    Shapes:
        frequencies [dim / 2] -> [dim / 2].
    """

    name: ClassVar[str] = "linear"
    paper: ClassVar[str] = (
        "Chen et al. 2023, Extending Context Window of Large Language Models via Positional "
        "Interpolation, arXiv:2306.15595"
    )

    test_params: ClassVar[Mapping[str, Any]] = {"factor": 2.0}

    def __init__(
        self,
        *,
        dim: FromParent[int],
        factor: Annotated[float, Field(gt=0)],
    ) -> None:
        super().__init__(dim=dim)
        self.factor = factor

    def scale(self, frequencies: Tensor, theta: float) -> Tensor:
        return frequencies / self.factor
