"""Locally typical sampling."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import Sampler
from zoo_sampling.logits import apply_temperature, keep_tokens, validate_range


class Typical(Sampler):
    r"""Locally typical sampling: sample from the tokens with information closest to the entropy.

    .. math:: p'(v) \propto p(v) \, [\, v \in C \,], \quad
        C = \arg\min_{C'} \sum_{v \in C'} |H(p) + \log p(v)|
        \ \text{with} \sum_{v \in C'} p(v) \ge m

    Paper: Meister et al. 2023, section 4.

    Args:
        mass: total probability that the kept tokens reach.
        temperature: applied before tokens are removed; below 1 the distribution is sharper, above 1
            flatter.

    Shapes:
        logprobs [B, 1, V], scores [B, 1] -> tokens, parents, scores [B, 1].
    """

    name: ClassVar[str] = "typical"
    paper: ClassVar[str] = "Meister et al. 2023, Locally Typical Sampling, arXiv:2202.00666"

    def __init__(
        self,
        *,
        mass: Annotated[float, Field(gt=0, le=1)] = 0.9,
        temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
    ) -> None:
        self.mass = validate_range("mass", mass, above=0, at_most=1)
        self.temperature = validate_range("temperature", temperature, above=0)

    def distribution(self, logprobs: Tensor) -> Tensor:
        logits = apply_temperature(logprobs, self.temperature)
        if self.mass == 1:
            return logits.softmax(dim=-1)
        information = -logits.log_softmax(dim=-1)
        H = (information * information.neg().exp()).nansum(dim=-1, keepdim=True)
        ascending, order = (information - H).abs().sort(dim=-1)
        cumulative = logits.gather(-1, order).softmax(dim=-1).cumsum(dim=-1)
        last = (cumulative < self.mass).sum(dim=-1, keepdim=True)
        threshold = ascending.gather(-1, last.clamp(max=logits.shape[-1] - 1))
        kept = ascending <= threshold
        return keep_tokens(logits, torch.empty_like(kept).scatter_(-1, order, kept))
