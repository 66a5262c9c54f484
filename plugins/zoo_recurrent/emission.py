"""Sampled decisions to emit a token or to read the next frame."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.plugin import RecordsAttention

Decision = tuple[Tensor, Tensor, Tensor]
"""Whether to emit, and the log-probability and entropy of the decision, each [B]."""


class Emission(RecordsAttention):
    r"""Decides from the state whether to emit a token: b ~ Bernoulli(sigmoid(W h + b)).

    In training the decision is sampled, without a gradient, and its log-probability is recorded; in
    evaluation a token is emitted if its probability exceeds 1/2.

    Args:
        hidden: width of the state.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.logit = nn.Linear(hidden, 1)

    @property
    def stochastic_part(self) -> nn.Module | None:
        return self

    def extra_repr(self) -> str:
        return f"hidden={self.hidden}"

    def forward(self, h: Tensor, forced: Tensor) -> Decision:
        """Decide for states h [B, hidden]; items with forced [B] emit in any case."""
        z = self.logit(h)[:, 0]  # [B]
        p = z.detach().sigmoid()
        emit = torch.rand_like(p) < p if self.training else p > 0.5
        logprob = torch.where(emit, F.logsigmoid(z), F.logsigmoid(-z))
        entropy = -(z.sigmoid() * F.logsigmoid(z) + (-z).sigmoid() * F.logsigmoid(-z))
        return emit | forced, logprob.masked_fill(forced, 0.0), entropy.masked_fill(forced, 0.0)
