"""Monotonic alignment."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Alignment, AlignmentContext
from zoo_alignment.masking import expand_mask


class Monotonic(Alignment):
    r"""Monotonic alignment: probability that a scan from the previous key stops at each key.

    .. math::
        p_{ij} = \sigma(e_{ij} + r), \qquad
        q_{ij} = (1 - p_{i,j-1}) \, q_{i,j-1} + \alpha_{i-1,j}, \qquad
        \alpha_{ij} = p_{ij} \, q_{ij}

    Paper: Raffel et al. 2017, equations 8 to 13. In training the weights are this expectation,
    with noise on the scores so that p becomes close to 0 or 1. In evaluation, mode 'hard' selects
    the first key with p > 1/2, which is the same recurrence with p rounded; mode 'soft' keeps the
    expectation. If no key is selected, the row sums to less than 1 and later rows are zero. The
    recurrence is computed by a parallel scan of products and sums in [0, 1], without the division
    of the paper's appendix, so it is numerically stable.

    Args:
        mode: weights in evaluation.
        noise: standard deviation of the noise added to the scores in training.
        r: initial value of the learned offset of the scores; negative values favour later keys.

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S].
    """

    name: ClassVar[str] = "monotonic"
    paper: ClassVar[str] = (
        "Raffel et al. 2017, Online and Linear-Time Attention by Enforcing Monotonic Alignments, "
        "arXiv:1704.00784"
    )
    normalised: ClassVar[bool] = False
    sequential: ClassVar[bool] = True
    weight_roles: ClassVar[Mapping[str, str]] = {"r": "special"}

    def __init__(
        self,
        *,
        mode: Literal["hard", "soft"] = "hard",
        noise: Annotated[float, Field(ge=0)] = 1.0,
        r: float = -1.0,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.noise = noise
        self.initial_r = r
        self.r = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.r, self.initial_r)

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        e = scores + self.r
        if self.training:
            e = e + self.noise * torch.randn_like(e)
        hard = self.mode == "hard" and not self.training
        p = (e > 0).to(e) if hard else e.sigmoid()
        p = p.masked_fill(~expand_mask(scores, mask), 0.0)
        alpha = _previous_alpha(p, context)  # [..., S]
        rows = []
        for i in range(p.shape[-2]):
            p_i = p[..., i, :]
            alpha = p_i * _scan(F.pad(1 - p_i[..., :-1], (1, 0)), alpha)
            rows.append(alpha)
        return torch.stack(rows, dim=-2)


def _previous_alpha(p: Tensor, context: AlignmentContext | None) -> Tensor:
    """Return the weights of the previous query [..., S]; one-hot at the first key initially."""
    start = F.one_hot(p.new_zeros((), dtype=torch.long), p.shape[-1]).to(p)
    start = start.expand(*p.shape[:-2], -1)
    if context is None or context.previous is None:
        return start
    steps = torch.as_tensor(context.offset, device=p.device).reshape(-1, *(1,) * (p.dim() - 2))
    return torch.where(steps == 0, start, context.previous)


def _scan(a: Tensor, b: Tensor) -> Tensor:
    """Compute q_j = a_j q_{j-1} + b_j over the last dimension in log S steps (Hillis, Steele)."""
    stride = 1
    while stride < b.shape[-1]:
        b = b + a * F.pad(b[..., :-stride], (stride, 0))
        a = a * F.pad(a[..., :-stride], (stride, 0), value=1.0)
        stride *= 2
    return b
