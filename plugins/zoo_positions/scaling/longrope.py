"""LongRoPE scaling of rotary angles."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import FromParent, Part
from zoo_positions.device_constant import DeviceConstant
from zoo_positions.scaling.rotary_scaling import RotaryScaling

Factors = list[Annotated[float, Field(gt=0)]]


class _FactorScaling(RotaryScaling):
    """Divides each frequency by a factor."""

    def __init__(self, dim: int, factors: Sequence[float], magnitude: float) -> None:
        super().__init__(dim=dim)
        self.factors, self.magnitude = DeviceConstant(factors), magnitude

    def scale(self, frequencies: Tensor, theta: float) -> Tensor:
        return frequencies / self.factors.tensor(frequencies, frequencies.dtype)


class LongRopeScaling(_FactorScaling, Part):
    r"""LongRoPE: each frequency is divided by a different factor, found by search.

    .. math::
        \theta_i' = \theta_i / \lambda_i, \qquad
        m = \sqrt{1 + \frac{\ln (N / L)}{\ln L}}

    Queries and keys are multiplied by m. All positions of a text longer than L have the long
    factors; generation processes a text again when it passes L, as Phi-3 of transformers does.

    Paper: Ding et al. 2024, equation 2; m is that of the authors' code.

    Args:
        dim: width that is rotated.
        short: factors of texts up to the original length, one for two dimensions.
        long: factors of longer texts.
        original_length: length of the contexts before the extension, L.
        length: length of the longest context, N.
        magnitude: factor of queries and keys of all texts; m, or 1 if N is at most L, if not set.

    Shapes:
        frequencies [dim / 2] -> [dim / 2].
    """

    name: ClassVar[str] = "longrope"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Ding et al. 2024, LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens, "
        "arXiv:2402.13753"
    )
    test_params: ClassVar[Mapping[str, Any]] = {
        "short": [1.0, 1.0, 1.0, 1.0],
        "long": [1.5, 2.0, 4.0, 4.0],
        "original_length": 16,
        "length": 64,
    }

    def __init__(
        self,
        *,
        dim: FromParent[int],
        short: Factors,
        long: Factors,
        original_length: Annotated[int, Field(ge=2)],
        length: Annotated[int, Field(ge=1)],
        magnitude: Annotated[float, Field(gt=0)] | None = None,
    ) -> None:
        ratio = max(length / original_length, 1.0)
        default = math.sqrt(1 + math.log(ratio) / math.log(original_length))
        super().__init__(dim, short, default if magnitude is None else magnitude)
        for name, factors in (("short", short), ("long", long)):
            if len(factors) != dim // 2:
                raise ZooError(
                    f"{name} has {len(factors)} factors, but {dim} rotated dimensions need "
                    f"{dim // 2}"
                )
        self.length, self.original_length = length, original_length
        self.max_length = original_length
        self.longer = _FactorScaling(dim, long, self.magnitude)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give texts of all lengths the factors of version 1."""
        if version == 1:
            name = "long" if params["length"] > params["original_length"] else "short"
            params |= dict.fromkeys(("short", "long"), params[name])
        return params, tensors
