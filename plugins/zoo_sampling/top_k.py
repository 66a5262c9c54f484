"""Sampling among the k likeliest tokens."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import Sampler
from zoo_sampling.logits import among, apply_temperature, validate_range


class TopK(Sampler):
    r"""Draws the next token among the k likeliest, and those as likely as the last of them.

    .. math:: p'(v) \propto p(v) \, [\, p(v) \ge p_{(k)} \,]

    Paper: Fan et al. 2018, section 5.4.

    Args:
        k: how many tokens stay possible.
        temperature: applied first; below 1 sharper, above 1 flatter.

    Shapes:
        logprobs [B, 1, V], scores [B, 1] -> tokens, parents, scores [B, 1].
    """

    name: ClassVar[str] = "top-k"
    paper: ClassVar[str] = "Fan et al. 2018, Hierarchical Neural Story Generation, arXiv:1805.04833"

    def __init__(
        self,
        *,
        k: Annotated[int, Field(ge=1)] = 10,
        temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
    ) -> None:
        self.k = int(validate_range("k", k, above=0))
        self.temperature = validate_range("temperature", temperature, above=0)

    def distribution(self, logprobs: Tensor) -> Tensor:
        logits = apply_temperature(logprobs, self.temperature)
        least = logits.topk(min(self.k, logits.shape[-1]), dim=-1).values[..., -1:]
        return among(logits, logits >= least)
