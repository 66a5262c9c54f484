"""Accelerations of the projections of attention over edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.acceleration import plain_class
from zoo.plugin import Acceleration, Blueprint, Call, Declined
from zoo_fast.gat.sparse_inputs import MIN_SIZE, SparseInputs
from zoo_gat.edge_attention import EdgeAttention, GlorotLinear
from zoo_gat.gat import Gat

Projected = tuple[Tensor, Tensor, Tensor]
"""Queries, keys and values."""


class SparseProjections(Acceleration):
    """Projections of inputs that are mostly zeros, such as bags of words, on the CPU."""

    name: ClassVar[str] = "edge-attention-sparse-inputs"
    serves: ClassVar[type[EdgeAttention]] = EdgeAttention
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.float64)
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def __init__(self) -> None:
        self.inputs = SparseInputs()

    def why_not(self, target: EdgeAttention, device: torch.device) -> str | None:
        if device.type != "cpu":
            return f"the device is '{device.type}', not 'cpu'"
        return _why_not_linear(target)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        device = torch.empty(0).device
        rows = torch.zeros(1, 64, MIN_SIZE // 64, dtype=dtype, device=device)
        rows[..., ::97] = 1.0
        yield Call(_layer(rows.shape[-1]).to(device, dtype), (rows,), method="project_inputs")

    def project_inputs(self, target: EdgeAttention, inputs: Tensor) -> Projected | Declined:
        if target.drops_heads:
            if target.query is not None or target.value is not None:
                return Declined("there are several projections")
            sparse = self.inputs.project_heads(
                target.key, inputs, target.heads, target.head_dropout
            )
            if sparse is None:
                return Declined("the inputs are dense")
            return sparse, sparse, target.head_dropout(sparse)
        keys = self.inputs.project(target.key, inputs)
        if keys is None:
            return Declined("the inputs are dense")
        queries = keys if target.query is None else self._project(target.query, inputs)
        return queries, keys, keys if target.value is None else self._project(target.value, inputs)

    def project_skip(self, target: EdgeAttention, inputs: Tensor) -> Tensor | Declined:
        assert target.skip is not None
        projected = self.inputs.project(target.skip, inputs)
        return Declined("the inputs are dense") if projected is None else projected

    def _project(self, linear: nn.Linear, inputs: Tensor) -> Tensor:
        projected = self.inputs.project(linear, inputs)
        return linear(inputs) if projected is None else projected


class HeadProjections(Acceleration):
    """Projections of inputs with a dropout mask for each head, from the weights of the head."""

    name: ClassVar[str] = "edge-attention-head-inputs"
    serves: ClassVar[type[EdgeAttention]] = EdgeAttention
    order: ClassVar[int] = 1
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    traceable: ClassVar[bool] = True

    def why_not(self, target: EdgeAttention, device: torch.device) -> str | None:
        if not target.drops_heads:
            return "all heads have the same inputs"
        return _why_not_linear(target)

    def project_inputs(self, target: EdgeAttention, inputs: Tensor) -> Projected:
        heads = [target.head_dropout(inputs) for _ in range(target.heads)]
        keys = _project_heads(target.key, heads)
        queries = keys if target.query is None else _project_heads(target.query, heads)
        values = keys if target.value is None else _project_heads(target.value, heads)
        return queries, keys, target.head_dropout(values)


def _project_heads(linear: nn.Linear, heads: list[Tensor]) -> Tensor:
    H = len(heads)
    biases = [None] * H if linear.bias is None else linear.bias.chunk(H)
    parts = zip(heads, linear.weight.chunk(H), biases, strict=True)
    return torch.cat([F.linear(x, weight, bias) for x, weight, bias in parts], dim=-1)


def _why_not_linear(target: EdgeAttention) -> str | None:
    """Return why projections cannot be computed from their weights, or None."""
    parts = (target.query, target.key, target.value, target.skip)
    if any(part is not None and plain_class(part) is not GlorotLinear for part in parts):
        return "a projection is not a plain linear layer"
    return None


def _layer(input_dim: int) -> EdgeAttention:
    return EdgeAttention(
        input_dim=input_dim, head_dim=3, heads=2, merge="concat", scorer=Blueprint.of(Gat)
    )
