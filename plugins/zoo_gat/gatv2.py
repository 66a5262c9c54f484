"""GATv2 scorer."""

from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent, Scorer, WidthConflict


class GatV2(Scorer):
    r"""GATv2 score, aᵀ LeakyReLU(q + k).

    .. math:: a(q, k) = a^\top \mathrm{LeakyReLU}(q + k)

    Paper: Brody et al. 2022, equation 7, where W [h_i; h_j] is the sum of a projected query and a
    projected key. Unlike `additive`, the projections belong to the attention, because that of the
    keys also computes the values.

    Args:
        query_dim: width of the queries, d.
        key_dim: width of the keys, equal to query_dim.
        slope: negative slope of the leaky ReLU.

    Shapes:
        query [..., T, d], key [..., S, d] -> [..., T, S].
    """

    name: ClassVar[str] = "gatv2"
    paper: ClassVar[str] = (
        "Brody et al. 2022, How Attentive are Graph Attention Networks?, arXiv:2105.14491"
    )

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        slope: Annotated[float, Field(ge=0, lt=1)] = 0.2,
    ) -> None:
        super().__init__()
        if query_dim != key_dim:
            raise WidthConflict(
                "gatv2 requires queries and keys of equal width",
                query_dim=query_dim,
                key_dim=key_dim,
            )
        self.query_dim, self.key_dim, self.slope = query_dim, key_dim, slope
        self.a = nn.Parameter(torch.empty(query_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = (6 / (self.query_dim + 1)) ** 0.5
        nn.init.uniform_(self.a, -bound, bound)

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return self.score_pairs(query[..., :, None, :], prepared[..., None, :, :])

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return F.leaky_relu(query + key, self.slope) @ self.a
