"""Linear warm-up, and the range of the steps after it."""

from typing import Annotated

from pydantic import Field

from zoo.plugin import InvalidParameter

Steps = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


def check_warmup(warmup: int, steps: int) -> int:
    """Return the number of warm-up steps; raise an error if the training has fewer steps."""
    if warmup > steps:
        raise InvalidParameter(
            "warmup",
            f"warmup is {warmup}, but the training has {steps} steps; set warmup to at most the "
            "number of steps",
        )
    return warmup


def warmup_factor(step: int, warmup: int) -> float:
    """Return step / warmup, at most 1."""
    return 1.0 if step >= warmup else step / warmup


def progress(step: int, warmup: int, steps: int) -> float:
    """Return the fraction of the steps after the warm-up that are done before a step, 0 to 1."""
    done = max(step - 1 - warmup, 0)
    return min(done / max(steps - warmup, 1), 1.0)
