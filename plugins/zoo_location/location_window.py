"""Location window scorer."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent, Scorer, full_precision, rename_params


class LocationWindow(Scorer):
    r"""Score of each position under a Gaussian mixture whose means move forward with each query.

    .. math::
        \phi(t, u) = \sum_k \alpha_t^k \exp(-\beta_t^k (\kappa_t^k - u)^2), \qquad
        e_{tu} = \log \phi(t, u)

        (\hat\alpha_t, \hat\beta_t, \hat\kappa_t) = W_p q_t + b_p, \quad
        \alpha_t = \exp \hat\alpha_t, \quad \beta_t = \exp \hat\beta_t, \quad
        \kappa_t = \kappa_{t-1} + \exp \hat\kappa_t

    Paper: Graves 2013, section 5.1, equations 46 to 51. As in the paper, positions start at u = 1
    and kappa at 0. The score is log phi, so that any alignment can be used: the weights of
    `exponential` are phi, as in the paper; those of `soft` are phi / sum_u phi, and with one
    Gaussian the softmax cancels alpha.

    Args:
        query_dim: width of the queries.
        mixture_components: number of Gaussians.

    Shapes:
        query [..., T, query_dim], key [..., S, any] -> [..., T, S]; every query is scored as if it
        were the first (previous kappa 0); `step`: query [B, 1, query_dim], kappa
        [B, mixture_components] -> [B, 1, S].
    """

    name: ClassVar[str] = "location-window"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Graves 2013, Generating Sequences With Recurrent Neural Networks, arXiv:1308.0850"
    )
    sequential: ClassVar[bool] = True
    ignores_keys: ClassVar[bool] = True

    def __init__(
        self, *, query_dim: FromParent[int], mixture_components: Annotated[int, Field(ge=1)] = 10
    ) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.mixture_components = mixture_components
        self.W_p = nn.Linear(query_dim, 3 * mixture_components)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, bumps="mixture_components")
        return params, tensors

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return self._log_phi(query, prepared, 0.0)[0]

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        raise ZooError(
            f"scorer '{self.name}' depends on key positions, so it cannot score pairs without them"
        )

    def init_state(self, prepared: Tensor) -> dict[str, Tensor]:
        kappa = prepared.new_zeros(prepared.shape[0], self.mixture_components)
        return {"kappa": full_precision(kappa)}

    def step(
        self, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        scores, kappa = self._log_phi(query, prepared, state["kappa"][:, None])
        return scores, {"kappa": kappa[:, 0]}

    def _log_phi(
        self, query: Tensor, prepared: Tensor, previous: Tensor | float
    ) -> tuple[Tensor, Tensor]:
        """Compute log phi [..., T, S] and kappa [..., T, K], given the previous kappa.

        Half precision is coarser than a position, so all terms are computed in float32 or higher.
        """
        parameters = full_precision(self.W_p(query))  # [..., T, 3 K]
        log_alpha, log_beta, log_stride = parameters.chunk(3, dim=-1)
        kappa = previous + log_stride.exp()
        u = torch.arange(1, prepared.shape[-2] + 1, device=kappa.device, dtype=kappa.dtype)
        distance = kappa[..., None, :] - u[:, None]  # [..., T, S, K]
        exponents = log_alpha[..., None, :] - log_beta.exp()[..., None, :] * distance.square()
        scores = exponents.logsumexp(dim=-1).clamp(min=torch.finfo(query.dtype).min)
        return scores.to(query.dtype), kappa
