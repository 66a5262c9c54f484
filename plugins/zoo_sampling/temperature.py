"""Temperature sampling."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import Sampler
from zoo_sampling.logits import apply_temperature, validate_range


class Temperature(Sampler):
    r"""Temperature sampling: sample from the softmax of the logits divided by a temperature.

    .. math:: p'(v) \propto p(v)^{1 / \tau}

    Paper: Ackley, Hinton and Sejnowski 1985, the temperature of a Boltzmann machine.

    Args:
        temperature: 1 leaves the distribution unchanged; below 1 sharper, above 1 flatter.

    Shapes:
        logprobs [B, 1, V], scores [B, 1] -> tokens, parents, scores [B, 1].
    """

    name: ClassVar[str] = "temperature"
    paper: ClassVar[str] = (
        "Ackley, Hinton and Sejnowski 1985, A Learning Algorithm for Boltzmann Machines"
    )

    def __init__(
        self, *, temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    ) -> None:
        self.temperature = validate_range("temperature", temperature, above=0)

    def distribution(self, logprobs: Tensor) -> Tensor:
        return apply_temperature(logprobs, self.temperature).softmax(dim=-1)
