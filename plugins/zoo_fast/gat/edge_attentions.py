"""Acceleration of attention over edges.

Notation: B batch, N nodes, H heads, D width of a head.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo.acceleration import plain_class
from zoo.plugin import Acceleration, Blueprint, Call, Declined
from zoo_fast.active_dropout import active_p
from zoo_fast.gat.fused_scorers import (
    MAX_WIDTH,
    attend_fused,
    attend_gat_layer,
    why_not_fused_on,
    why_not_fused_values,
)
from zoo_gat.edge_attention import EdgeAttention, GlorotLinear
from zoo_gat.edges import EdgeList
from zoo_gat.gat import Gat
from zoo_gat.gatv2 import GatV2


class EdgeAttentionFused(Acceleration):
    """Attention over sorted edges: in Triton kernels on a GPU, and for `gat` also on the CPU.

    A layer with one projection and the scorer `gat` is computed from its inputs on a GPU.
    """

    name: ClassVar[str] = "edge-attention-fused"
    serves: ClassVar[type[EdgeAttention]] = EdgeAttention
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.float64, torch.bfloat16)
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: EdgeAttention, device: torch.device) -> str | None:
        if target.head_dim > MAX_WIDTH:
            return f"the width of a head is more than {MAX_WIDTH}"
        return why_not_fused_on(target.scorers, device.type)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        device, generator = torch.empty(0).device, torch.Generator("cpu").manual_seed(0)
        graphs = {
            "one node": (1, [[[0, 0]]]),
            "no edges": (3, [[[-1, -1]]]),
            "isolated and repeated": (5, [[[0, 1], [0, 1], [2, 1], [3, 3], [4, 3]]]),
            "padded": (4, [[[0, 1], [1, 2], [3, 0]], [[2, 0], [1, 0], [-1, -1]]]),
        }
        options: tuple[tuple[Any, dict[str, Any]], ...] = (
            (Gat, {"bias": True}),
            (Gat, {"project": "qkv", "residual": "linear"}),
            (GatV2, {"project": "kv", "bias": False}),
        )
        for N, listed in graphs.values():
            for scorer, params in options:
                layer = EdgeAttention(
                    input_dim=4,
                    head_dim=3,
                    heads=2,
                    merge="mean" if N == 1 else "concat",
                    scorer=Blueprint.of(scorer),
                    **params,
                )
                edges = torch.tensor(listed, device=device)
                mask = torch.ones(len(listed), N, dtype=torch.bool, device=device)
                mask[-1, 3:] = False
                inputs = torch.randn(len(listed), N, 4, generator=generator, device="cpu")
                pairs = EdgeList.from_batch(edges, mask, self_loops=scorer is Gat)
                yield Call(layer.to(device, dtype), (inputs.to(device, dtype), mask, pairs))

    def forward(
        self, target: EdgeAttention, inputs: Tensor, mask: Tensor, edges: EdgeList | None
    ) -> Tensor | Declined:
        if edges is None:
            return Declined("there are no edges")
        attended = self._attend_layer(target, inputs, edges)
        if attended is None:
            # Before the projections, because the reference path samples their dropout again.
            reason = "there are no values" if not inputs.numel() else None
            reason = reason or why_not_fused_values(target.scorers, _empty_values(inputs))
            if reason is not None:
                return Declined(reason)
            parts = target.project_inputs(inputs)
            attended = self._attend_projected(target, *parts, edges)
        merged = target.merge_heads(attended, inputs)
        if target.bias is None or target.merge == "concat":  # kernels add it to the heads
            return merged
        return merged + target.bias

    def _attend_layer(
        self, target: EdgeAttention, inputs: Tensor, edges: EdgeList
    ) -> Tensor | None:
        """Attend in kernels that compute the projections: [B, N, H, D].

        Returns None if there are several projections, or no such kernels.
        """
        if target.drops_heads or target.query is not None:
            return None
        if plain_class(target.key) is not GlorotLinear:
            return None
        output = attend_gat_layer(
            target.scorers,
            inputs.flatten(0, 1),
            target.key,
            edges,
            bias=_head_bias(target),
            dropout_p=active_p(target.dropout),
        )
        return None if output is None else output.view(*inputs.shape[:2], *output.shape[1:])

    def _attend_projected(
        self, target: EdgeAttention, queries: Tensor, keys: Tensor, values: Tensor, edges: EdgeList
    ) -> Tensor:
        """Attend along edges: projected [B, N, H * D] -> [B, N, H, D]."""
        shape = (-1, target.heads, target.head_dim)
        q, k, v = (part.reshape(shape) for part in (queries, keys, values))
        q, v = k if queries is keys else q, k if values is keys else v
        output = attend_fused(
            target.scorers,
            q,
            k,
            v,
            edges,
            bias=_head_bias(target),
            dropout_p=active_p(target.dropout),
        )
        return output.view(*values.shape[:2], target.heads, target.head_dim)


def _empty_values(inputs: Tensor) -> Tensor:
    """Return an empty tensor of the dtype of the projected inputs."""
    device = inputs.device.type
    if torch.is_autocast_enabled(device) and inputs.dtype != torch.float64:
        return inputs.new_empty(0, dtype=torch.get_autocast_dtype(device))
    return inputs.new_empty(0)


def _head_bias(target: EdgeAttention) -> Tensor | None:
    """Return the bias of the output [H * D] if it can be added before the heads are merged."""
    return target.bias if target.merge == "concat" else None
