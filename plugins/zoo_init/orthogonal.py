"""Orthogonal initialiser."""

import math
from typing import ClassVar, Literal

from torch import nn

from zoo.plugin import Weight
from zoo_init.scheme import PositiveFloat, Scheme


class Orthogonal(Scheme):
    r"""Orthogonal initialiser: orthogonal recurrent matrices, normal distributions for the rest.

    .. math:: U^\top U = I, \qquad W \sim \mathcal{N}(0, \sigma^2), \qquad b = 0

    The recurrent matrix of each gate is orthogonal.

    Paper: Bahdanau et al. 2015, appendix B.1.

    Args:
        std: standard deviation of weights that are not recurrent, sigma.
        scorer_std: standard deviation of the weights of scorers; std if not set.
        vectors: whether weight vectors, such as that of an additive scorer, are sampled or 0.
        embeddings: whether to sample embeddings; otherwise they keep their own initial values.

    Shapes:
        any weight, in place.
    """

    name: ClassVar[str] = "orthogonal"
    paper: ClassVar[str] = (
        "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align and "
        "Translate, arXiv:1409.0473"
    )

    def __init__(
        self,
        *,
        std: PositiveFloat = 0.01,
        scorer_std: PositiveFloat | None = None,
        vectors: Literal["normal", "zeros"] = "normal",
        embeddings: bool = True,
    ) -> None:
        super().__init__(embeddings=embeddings)
        self.std, self.scorer_std, self.vectors = std, scorer_std, vectors

    def weight_std(self, weight: Weight) -> float:
        if weight.role == "recurrent":
            rows, columns = weight.tensor.shape
            return 1 / math.sqrt(max(rows // _num_gates(weight), columns))
        if weight.role == "vector" and self.vectors == "zeros":
            return 0.0
        return self.scorer_std or self.std if weight.kind == "scorer" else self.std

    def sample(self, weight: Weight) -> None:
        if weight.role == "recurrent":
            for gate in weight.tensor.chunk(_num_gates(weight)):
                nn.init.orthogonal_(gate)
        else:
            weight.tensor.normal_(std=self.weight_std(weight))


def _num_gates(weight: Weight) -> int:
    """Return the number of square matrices [H, H] that a recurrent weight [G * H, H] contains."""
    rows, columns = weight.tensor.shape
    return rows // columns if rows % columns == 0 else 1
