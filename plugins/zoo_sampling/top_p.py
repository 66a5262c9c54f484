"""Nucleus sampling."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import Sampler
from zoo_sampling.logits import apply_temperature, keep_tokens, validate_range


class TopP(Sampler):
    r"""Nucleus sampling: sample from the fewest tokens whose total probability reaches p.

    .. math:: q'(v) \propto q(v) \, [\, v \in V_p \,], \quad
        V_p = \text{the smallest set with} \sum_{v \in V_p} q(v) \ge p

    where q is the distribution after the temperature is applied.

    Paper: Holtzman et al. 2020, equations 2 and 3.

    Args:
        p: total probability to reach; the most probable token is always kept.
        temperature: applied before tokens are removed; below 1 the distribution is sharper, above 1
            flatter.

    Shapes:
        logprobs [B, 1, V], scores [B, 1] -> tokens, parents, scores [B, 1].
    """

    name: ClassVar[str] = "top-p"
    paper: ClassVar[str] = (
        "Holtzman et al. 2020, The Curious Case of Neural Text Degeneration, arXiv:1904.09751"
    )

    def __init__(
        self,
        *,
        p: Annotated[float, Field(gt=0, le=1)] = 0.9,
        temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
    ) -> None:
        self.p = validate_range("p", p, above=0, at_most=1)
        self.temperature = validate_range("temperature", temperature, above=0)

    def distribution(self, logprobs: Tensor) -> Tensor:
        logits = apply_temperature(logprobs, self.temperature)
        if self.p == 1:
            return logits.softmax(dim=-1)
        # Remove the least probable tokens while their total probability is at most 1 - p.
        ascending, order = logits.sort(dim=-1)
        kept = ascending.softmax(dim=-1).cumsum(dim=-1) > 1 - self.p
        kept[..., -1].fill_(True)
        return keep_tokens(logits, torch.empty_like(kept).scatter_(-1, order, kept))
