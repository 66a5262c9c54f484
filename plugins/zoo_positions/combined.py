"""Several positions together."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Attention, Blueprint, FromParent, Position


class Combined(Position):
    r"""Several position encodings together, each applied in turn.

    .. math:: x' = (f_n \circ \dots \circ f_1)(x), \qquad e'_{ts} = e_{ts} + \sum_i b^{(i)}_{ts}

    Paper: Song et al. 2020, section 2.4, whose model has absolute positions and a relative bias.

    Args:
        dim: width of the states.
        heads: number of heads.
        head_dim: width of a head.
        causal: whether queries attend to previous keys only.
        parts: the position encodings.

    Shapes:
        [B, T, dim] -> [B, T, dim]; bias [H, T, S].
    """

    name: ClassVar[str] = "combined"
    paper: ClassVar[str] = (
        "Song et al. 2020, MPNet: Masked and Permuted Pre-training for Language Understanding, "
        "arXiv:2004.09297"
    )
    test_params: ClassVar[Mapping[str, Any]] = {"parts": [{"type": "learned", "length": 8}, "t5"]}

    def __init__(
        self,
        *,
        dim: FromParent[int],
        heads: FromParent[int],
        head_dim: FromParent[int],
        causal: FromParent[bool],
        parts: Sequence[Blueprint[Position]],
    ) -> None:
        super().__init__()
        self.dim, self.heads, self.head_dim = dim, heads, head_dim
        if not parts:
            raise ZooError("parts is empty; list at least one position encoding")
        built: list[Position] = [
            part.build(dim=dim, heads=heads, head_dim=head_dim, causal=causal) for part in parts
        ]
        self.parts = nn.ModuleList(built)
        self.is_rotary = any(part.is_rotary for part in built)
        self.requires_inner_product = any(part.requires_inner_product for part in built)
        self.switch_lengths = tuple(sorted({n for part in built for n in part.switch_lengths}))
        limits = [part.max_positions for part in built if part.max_positions is not None]
        self.max_positions = min(limits, default=None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, heads={self.heads}, head_dim={self.head_dim}"

    def for_length(self, length: int) -> Combined:
        if not self.switch_lengths:
            return self
        other = copy.copy(self)
        parts: list[Position] = list(self.parts)  # type: ignore[arg-type]
        selected = nn.ModuleList(part.for_length(length) for part in parts)
        other._modules = {**self._modules, "parts": selected}
        return other

    @property
    def has_bias(self) -> bool:
        return any(part.has_bias for part in self.parts)

    @property
    def has_score_bias(self) -> bool:
        return any(part.has_score_bias for part in self.parts)

    def add(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        for part in self.parts:
            states = part("add", states, offset=offset)
        return states

    def rotate(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        for part in self.parts:
            states = part("rotate", states, offset=offset)
        return states

    def bias(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> Tensor | None:
        parts: list[Position] = list(self.parts)  # type: ignore[arg-type]
        biases = [part.bias(T, S, offset=offset, device=device) for part in parts]
        found = [bias for bias in biases if bias is not None]
        return torch.stack(found).sum(dim=0) if found else None

    def build_score_bias(self, query_dim: int) -> nn.Module | None:
        return CombinedBias(self, query_dim) if self.has_score_bias else None


class CombinedBias(nn.Module):
    """The sum of the score biases of several positions, in one attention.

    Args:
        position: the positions.
        query_dim: width of the attention's inputs.
    """

    def __init__(self, position: Combined, query_dim: int) -> None:
        super().__init__()
        self.parts = nn.ModuleDict()
        for index, part in enumerate(position.parts):
            built = part.build_score_bias(query_dim)  # type: ignore[operator]
            if built is not None:
                self.parts[str(index)] = built

    def forward(
        self,
        attention: Attention,
        position: Combined,
        states: Tensor,
        queries: Tensor,
        keys: Tensor,
        *,
        offset: int | Tensor = 0,
    ) -> Tensor:
        biases = [
            bias(attention, position.parts[int(i)], states, queries, keys, offset=offset)
            for i, bias in self.parts.items()
        ]
        total: Tensor = sum(biases[1:], biases[0])
        return total
