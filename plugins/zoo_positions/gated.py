"""Gated position: a relative bias, scaled by gates that depend on the query.

Notation: B batch, H heads, T queries, S keys, d width of a head.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Attention, Blueprint, FromParent, Linear, Position


class Gated(Position):
    r"""Relative bias of another position, scaled by gates of the query's state.

    .. math::
        b'_{ts} = \big(2 + g_t (w\, r_t - 1)\big)\, b_{ts}, \qquad
        g_t = \sigma(u^\top x_t + c), \quad r_t = \sigma(v^\top x_t + c')

    where x is the part of a head of the state before its projection, and w is a learned factor of
    each head. All layers share the bias b; gates and factors are those of each layer.

    Paper: Chen et al. 2022, section III.B. As in the authors' code, u, v, c and c' are sums of
    four parameters each.

    Args:
        dim: width of the states.
        heads: number of heads.
        head_dim: width of a head, d.
        causal: whether queries attend to previous keys only.
        position: position whose bias is scaled, for example `t5`.

    Shapes:
        bias of an attention [B, H, T, S].
    """

    name: ClassVar[str] = "gated"
    paper: ClassVar[str] = (
        "Chen et al. 2022, WavLM: Large-Scale Self-Supervised Pre-Training for Full Stack Speech "
        "Processing, arXiv:2110.13900"
    )
    test_params: ClassVar[Mapping[str, Any]] = {"position": "t5"}

    def __init__(
        self,
        *,
        dim: FromParent[int],
        heads: FromParent[int],
        head_dim: FromParent[int],
        causal: FromParent[bool],
        position: Blueprint[Position],
    ) -> None:
        super().__init__()
        self.dim, self.heads, self.head_dim, self.causal = dim, heads, head_dim, causal
        inner: Position = position.build(dim=dim, heads=heads, head_dim=head_dim, causal=causal)
        if not inner.has_bias or inner.has_score_bias:
            raise ZooError(
                f"position '{inner.name}' has no bias that gates can scale; use another position, "
                "for example t5"
            )
        self.position = inner
        self.is_rotary, self.max_positions = inner.is_rotary, inner.max_positions

    def add(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        added: Tensor = self.position("add", states, offset=offset)
        return added

    def rotate(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        rotated: Tensor = self.position("rotate", states, offset=offset)
        return rotated

    def relative(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> tuple[Tensor, ...]:
        """Return the bias b [H, T, S]."""
        bias = self.position.bias(T, S, offset=offset, device=device)
        assert bias is not None
        return (bias,)

    def build_score_bias(self, query_dim: int) -> nn.Module | None:
        if query_dim != self.heads * self.head_dim:
            raise ZooError(
                f"position 'gated' splits states into heads: their width ({query_dim}) must be "
                f"heads x head_dim ({self.heads} x {self.head_dim})"
            )
        return GatedBias(self.heads, self.head_dim)


class GatedBias(nn.Module):
    """The gates of one attention.

    Args:
        heads: number of heads.
        head_dim: width of a head.
    """

    weight_roles: ClassVar[Mapping[str, str]] = {"factor": "special"}

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.heads = heads
        self.gates = Linear(head_dim, 8)
        self.factor = nn.Parameter(torch.empty(1, heads, 1, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.factor)

    def extra_repr(self) -> str:
        return f"heads={self.heads}"

    def forward(
        self,
        attention: Attention,
        position: Gated,
        states: Tensor,
        queries: Tensor,
        keys: Tensor,
        *,
        offset: int | Tensor = 0,
    ) -> Tensor:
        (bias,) = position("relative", queries, keys, offset=offset)  # [H, T, S]
        x = states.reshape(*states.shape[:2], self.heads, -1).transpose(1, 2)  # [B, H, T, d]
        g, r = self.gates(x).unflatten(-1, (2, 4)).sum(dim=-1).sigmoid().split(1, dim=-1)
        scaled: Tensor = (2 + g * (self.factor * r - 1)) * bias
        return scaled
