"""Parameter groups of torch optimisers, and the ranges of their options."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from zoo.plugin import Weight

Decay = Literal["matrices", "all"]
LearningRate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, lt=1)]

_MATRICES = ("linear", "convolution", "recurrent", "embedding")


def parameter_groups(
    weights: Sequence[Weight], weight_decay: float, decay: Decay
) -> list[dict[str, Any]]:
    """Return one group of named parameters with weight decay and one without; none is empty."""
    decayed = [w for w in weights if decay == "all" or w.role in _MATRICES]
    others = [w for w in weights if decay != "all" and w.role not in _MATRICES]
    if weight_decay == 0:
        decayed, others = list(weights), []
    return [
        {"params": [(w.name, w.tensor) for w in group], "weight_decay": rate}
        for group, rate in ((decayed, weight_decay), (others, 0.0))
        if group
    ]


def supports_fused(weights: Sequence[Weight]) -> bool:
    """Return whether to use fused kernels: if all parameters are on CPU or CUDA devices."""
    return all(weight.tensor.device.type in ("cpu", "cuda") for weight in weights)


def is_on_cuda(weights: Sequence[Weight]) -> bool:
    """Return whether all parameters are on CUDA devices."""
    return all(weight.tensor.device.type == "cuda" for weight in weights)
