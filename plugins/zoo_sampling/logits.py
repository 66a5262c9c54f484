"""Helpers of stochastic samplers."""

import math

from torch import Tensor

from zoo import ZooError


def validate_range(name: str, value: float, *, above: float, at_most: float = math.inf) -> float:
    """Return the value, or raise ZooError if it is not in the range (above, at_most]."""
    if not (above < value <= at_most and math.isfinite(value)):
        maximum = "" if at_most == math.inf else f" and at most {at_most:g}"
        raise ZooError(f"{name} is {value}; it must be above {above:g}{maximum}")
    return value


def apply_temperature(logprobs: Tensor, temperature: float) -> Tensor:
    """Divide logits by a temperature, after shifting the maximum to 0 to avoid overflow."""
    if temperature == 1.0:
        return logprobs
    return (logprobs - logprobs.amax(dim=-1, keepdim=True)) / temperature


def keep_tokens(logits: Tensor, kept: Tensor) -> Tensor:
    """Return probabilities [..., V] that are zero where `kept` is False."""
    return logits.where(kept, -math.inf).softmax(dim=-1)
