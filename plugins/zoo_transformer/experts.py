"""Feed-forward network of several experts.

Notation: N tokens, E experts, k experts of a token, D width.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import (
    Blueprint,
    FromParent,
    InvalidParameter,
    Linear,
    Part,
    build_layers,
    full_precision,
)
from zoo_transformer.feed_forward import FeedForward


class Experts(FeedForward, Part):
    r"""Mixture of experts: each token is processed by the k experts that a router selects.

    .. math:: y = \sum_{i \in \mathcal{T}} p_i\, E_i(x) \; [\, + \sigma(w_s^\top x)\, E_s(x) \,],
        \qquad \mathcal{T} = \mathrm{top}_k(W_r x), \qquad p = \mathrm{softmax}(W_r x)

    The router gets a gradient through the weights p of the selected experts.

    Paper: Shazeer et al. 2017, equations 1 to 5 without noise; Fedus et al. 2022, section 2.1;
    Dai et al. 2024, section 3.2 (shared expert).

    Args:
        dim: width of the states.
        count: number of experts, E.
        selected: number of experts of a token, k.
        expert: each of the experts.
        softmax: the experts over which the softmax is computed: 'all', or those 'selected', whose
            weights then sum to 1, as if those of 'all' were divided by their sum.
        router_bias: whether the router has a bias.
        shared: a further expert, of all tokens; none if not set.
        shared_gate: whether the output of the shared expert is multiplied by a learned gate.

    Shapes:
        [..., dim] -> [..., dim].
    """

    name: ClassVar[str] = "experts"
    paper: ClassVar[str] = (
        "Shazeer et al. 2017, Outrageously Large Neural Networks: The Sparsely-Gated "
        "Mixture-of-Experts Layer, arXiv:1701.06538"
    )
    test_params: ClassVar[Mapping[str, Any]] = {
        "count": 4,
        "selected": 2,
        "expert": {"hidden": 3},
        "shared": {"hidden": 5},
    }
    residual_layers: ClassVar[tuple[str, ...]] = ("*.down",)

    def __init__(
        self,
        *,
        dim: FromParent[int],
        count: Annotated[int, Field(ge=1, le=1024)],
        selected: Annotated[int, Field(ge=1)],
        expert: Blueprint[FeedForward],
        softmax: Literal["all", "selected"] = "selected",
        router_bias: bool = False,
        shared: Blueprint[FeedForward] | None = None,
        shared_gate: bool = False,
    ) -> None:
        super(FeedForward, self).__init__()  # it has no layers besides those of its experts
        if selected > count:
            message = f"selected ({selected}) exceeds the number of experts, count ({count})"
            raise InvalidParameter("selected", message)
        if shared_gate and shared is None:
            raise InvalidParameter("shared_gate", "it requires a shared expert; set shared")
        self.dim, self.count, self.selected, self.softmax = dim, count, selected, softmax
        self.router = Linear(dim, count, bias=router_bias)
        self.experts = build_layers(count, lambda: expert.build(dim=dim))
        self.shared = None if shared is None else shared.build(dim=dim)
        self.shared_gate = Linear(dim, 1, bias=False) if shared_gate else None

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, self.dim)  # [N, D]
        weights, chosen = self.route(tokens)
        order = chosen.flatten().argsort(stable=True)  # [N k], pairs of a token and an expert
        loads, output = self._loads(chosen), torch.zeros_like(tokens)
        for expert, pairs in zip(self.experts, order.split_with_sizes(loads), strict=True):
            if len(pairs) == 0 and not self.training:  # in training, the gradient is 0, not None
                continue
            rows = pairs // self.selected
            weighted = weights.flatten()[pairs, None] * expert(tokens[rows])
            output.index_add_(0, rows, weighted.to(output.dtype))
        if self.shared is not None:
            output = output + self._share(tokens)
        return output.reshape(x.shape)

    def route(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights and indices, both [N, k], of the experts of tokens [N, D]."""
        logits = self.router(tokens)  # [N, E]
        values, chosen = full_precision(logits).topk(self.selected, dim=-1)
        if self.softmax == "selected":
            weights = values.softmax(dim=-1)
        else:
            weights = full_precision(logits).softmax(dim=-1).gather(-1, chosen)
        return weights.to(logits.dtype), chosen

    def _loads(self, chosen: Tensor) -> list[int]:
        """Return the number of tokens of each expert."""
        if chosen.is_meta:  # no values: one expert takes all
            return [chosen.numel()] + [0] * (self.count - 1)
        loads: list[int] = chosen.flatten().bincount(minlength=self.count).tolist()
        return loads

    def _share(self, tokens: Tensor) -> Tensor:
        """Compute the output of the shared expert [N, D]."""
        assert self.shared is not None
        output: Tensor = self.shared(tokens)
        return output if self.shared_gate is None else self.shared_gate(tokens).sigmoid() * output

    def extra_repr(self) -> str:
        names = ("dim", "count", "selected", "softmax")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
