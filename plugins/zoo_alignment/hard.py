"""Hard alignment."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import Alignment, AlignmentContext, Samples
from zoo_alignment.masking import expand_mask, masked_softmax


class Hard(Alignment):
    r"""One-hot weights: a sampled key in training, the most probable key in evaluation.

    .. math::
        s_t \sim \mathrm{Categorical}(\alpha_t), \qquad
        \alpha_{ts} = \frac{\exp e_{ts}}{\sum_{s'} \exp e_{ts'}}, \qquad
        w_{ts} = [s = s_t]

    Paper: Xu et al. 2015, equations 8 and 9. Sampling has no gradient: the objective `reinforce`
    uses the log-probability of the sample (equations 11 to 14), and the straight-through estimator
    uses the gradient of alpha for w.

    Args:
        straight_through: whether to use the straight-through estimator (Bengio et al. 2013).
        expectation: probability that, in training, the weights of a query are alpha, the
            expectation of w, instead of a sample (section 4.1). The paper chooses once per image
            with 0.5, this alignment for each query. The log-probability is then 0.

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S], one-hot unless they are
        the expectation.
    """

    name: ClassVar[str] = "hard"
    paper: ClassVar[str] = (
        "Xu et al. 2015, Show, Attend and Tell: Neural Image Caption Generation with Visual "
        "Attention, arXiv:1502.03044"
    )

    def __init__(
        self,
        *,
        straight_through: bool = False,
        expectation: Annotated[float, Field(ge=0, le=1)] = 0.0,
    ) -> None:
        super().__init__()
        self.straight_through = straight_through
        self.expectation = expectation

    @property
    def is_stochastic(self) -> bool:
        return not self.straight_through

    def forward(
        self,
        scores: Tensor,
        mask: Tensor | None = None,
        context: AlignmentContext | None = None,
        *,
        return_samples: bool = False,
    ) -> Tensor | tuple[Tensor, Samples]:
        alpha = masked_softmax(scores, mask)
        probs = alpha.detach()
        if self.training:
            # argmax(alpha / exponential noise) is a sample from alpha.
            probs = probs / torch.empty_like(probs).exponential_()
        s = probs.argmax(dim=-1, keepdim=True)  # [..., T, 1]
        mask = expand_mask(scores, mask)
        weights = torch.zeros_like(probs).scatter(-1, s, 1.0).masked_fill(~mask, 0.0)
        if self.straight_through:
            weights = weights + (alpha - alpha.detach())
        expected = None
        if self.training and self.expectation:
            expected = torch.rand_like(probs[..., :1]) < self.expectation  # [..., T, 1]
            weights = torch.where(expected, alpha, weights)
        if not return_samples:
            return weights
        lowest = torch.finfo(scores.dtype).min
        log_alpha = scores.masked_fill(~mask, lowest).log_softmax(dim=-1).masked_fill(~mask, 0.0)
        entropy = -(alpha * log_alpha).sum(dim=-1)
        logprob = log_alpha.gather(-1, s)
        if expected is not None:
            logprob = logprob.masked_fill(expected, 0.0)
        return weights, Samples(logprob[..., 0], entropy)
