"""Min-p sampling."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import Sampler
from zoo_sampling.logits import apply_temperature, keep_tokens, validate_range


class MinP(Sampler):
    r"""Min-p sampling: sample from the tokens with at least p times the maximum probability.

    .. math:: q'(v) \propto q(v) \, [\, q(v) \ge p \max_u q(u) \,]

    where q is the distribution after the temperature is applied.

    Paper: Nguyen et al. 2024, section 3.

    Args:
        p: minimum probability, relative to that of the most probable token.
        temperature: applied before tokens are removed; below 1 the distribution is sharper, above 1
            flatter.

    Shapes:
        logprobs [B, 1, V], scores [B, 1] -> tokens, parents, scores [B, 1].
    """

    name: ClassVar[str] = "min-p"
    paper: ClassVar[str] = (
        "Nguyen et al. 2024, Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM "
        "Outputs, arXiv:2407.01082"
    )

    def __init__(
        self,
        *,
        p: Annotated[float, Field(gt=0, le=1)] = 0.1,
        temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
    ) -> None:
        self.p = validate_range("p", p, above=0, at_most=1)
        self.temperature = validate_range("temperature", temperature, above=0)

    def distribution(self, logprobs: Tensor) -> Tensor:
        logits = apply_temperature(logprobs, self.temperature)
        probs = logits.softmax(dim=-1)
        return keep_tokens(logits, probs >= self.p * probs.amax(dim=-1, keepdim=True))
