"""Location window: a mixture of Gaussians that only moves forward."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent, Scorer


class LocationWindow(Scorer):
    r"""Scores places alone, by Gaussian bumps that each query moves forward.

    .. math::
        \phi(t, u) = \sum_k \alpha_t^k \exp(-\beta_t^k (\kappa_t^k - u)^2), \qquad
        e_{tu} = \log \phi(t, u)

        (\hat\alpha_t, \hat\beta_t, \hat\kappa_t) = W_p q_t + b_p, \quad
        \alpha_t = \exp \hat\alpha_t, \quad \beta_t = \exp \hat\beta_t, \quad
        \kappa_t = \kappa_{t-1} + \exp \hat\kappa_t

    Paper: Graves 2013, section 5.1, equations 46 to 51; the first place is u = 1 and kappa
    starts at 0, as there. The score is log phi, so that any alignment can follow: the softmax
    of it is phi / sum_u phi, where the paper mixes by phi as it is. With one bump the softmax
    takes alpha away again.

    Args:
        query_dim: width of the queries.
        bumps: how many Gaussians the window has.

    Shapes:
        query [..., T, query_dim], key [..., S, any] -> [..., T, S], each query as the first; a
        step: query [B, 1, query_dim], kappa [B, bumps] -> [B, 1, S].
    """

    name: ClassVar[str] = "location-window"
    paper: ClassVar[str] = (
        "Graves 2013, Generating Sequences With Recurrent Neural Networks, arXiv:1308.0850"
    )
    sequential: ClassVar[bool] = True
    ignores_keys: ClassVar[bool] = True

    def __init__(
        self, *, query_dim: FromParent[int], bumps: Annotated[int, Field(ge=1)] = 10
    ) -> None:
        super().__init__()
        self.bumps = bumps
        self.W_p = nn.Linear(query_dim, 3 * bumps)

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        alpha, beta, stride = self.W_p(query).chunk(3, dim=-1)  # [..., T, bumps]
        return self._log_phi(alpha, beta, stride.exp(), prepared)

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        raise ZooError(
            f"scorer '{self.name}' scores places in a sequence; a pair of its own has none"
        )

    def init_state(self, prepared: Tensor) -> dict[str, Tensor]:
        return {"kappa": prepared.new_zeros(prepared.shape[0], self.bumps)}

    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        alpha, beta, stride = self.W_p(query).chunk(3, dim=-1)  # [B, 1, bumps]
        kappa = state["kappa"][:, None] + stride.exp()
        return self._log_phi(alpha, beta, kappa, prepared), {"kappa": kappa[:, 0]}

    def _log_phi(self, alpha: Tensor, beta: Tensor, kappa: Tensor, prepared: Tensor) -> Tensor:
        """Logarithms of alpha and beta, and kappa, [..., T, bumps] -> [..., T, S]."""
        S = prepared.shape[-2]
        u = torch.arange(1, S + 1, device=kappa.device, dtype=kappa.dtype)[:, None]
        distance = kappa[..., None, :] - u  # [..., T, S, bumps]
        bumps = alpha[..., None, :] - beta.exp()[..., None, :] * distance.square()
        return bumps.logsumexp(dim=-1)
