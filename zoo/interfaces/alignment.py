"""Interface of alignments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component
from zoo.interfaces.data import AlignmentContext, Samples


class Alignment(Component, nn.Module, ABC):
    """Converts scores into attention weights.

    From the parent: query_dim, heads.

    Laws:
        weights are not negative; a masked key gets weight 0 and does not affect other weights;
        rows sum to 1 (at most 1 if not `normalised`, any value if not `bounded`); fully masked
        rows are zero, not NaN; processing queries one at a time gives the same weights as in
        parallel, except for sequential alignments; autocast does not change the weights of
        thousands of keys.
    """

    kind: ClassVar[str] = "alignment"
    bounded: ClassVar[bool] = True
    """Whether rows sum to at most 1."""
    sequential: ClassVar[bool] = False
    """Whether the weights depend on those of the previous query."""
    needs_step_index: ClassVar[bool] = False
    """Whether it needs the number of previous queries."""

    @property
    def normalised(self) -> bool:
        """Whether rows sum to 1."""
        return True

    @property
    def is_stochastic(self) -> bool:
        """Whether positions are sampled in training, so that the scores get no gradient.

        `forward` of a stochastic alignment takes ``return_samples``; if it is true, it returns
        the weights and the log-probability and entropy of the samples ([..., T]).
        """
        return False

    @abstractmethod
    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor | tuple[Tensor, Samples]:
        """Compute attention weights [..., T, S] from scores [..., T, S].

        Args:
            mask: broadcastable to the scores, True where a key is attended to.
            context: query, step index and previous weights; set by `Attention`, whose scores are
                [B, H, T, S].
        """
