"""What the samplers that draw share; the draw itself is ``Sampler.select``."""

import math

from torch import Tensor

from zoo import ZooError


def validate_range(name: str, value: float, *, above: float, most: float = math.inf) -> float:
    """The value, or ZooError if it is not above the one limit and at most the other."""
    if not (above < value <= most and math.isfinite(value)):
        limit = "" if most == math.inf else f" and at most {most:g}"
        raise ZooError(f"{name} is {value}; it must be above {above:g}{limit}")
    return value


def apply_temperature(logprobs: Tensor, temperature: float) -> Tensor:
    """Sharper or flatter logits; the largest is 0, so that no temperature overflows it."""
    if temperature == 1.0:
        return logprobs
    return (logprobs - logprobs.amax(dim=-1, keepdim=True)) / temperature


def among(logits: Tensor, kept: Tensor) -> Tensor:
    """Probabilities [..., V] with all mass on the tokens that are kept."""
    return logits.masked_fill(~kept, -math.inf).softmax(dim=-1)
