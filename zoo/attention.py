"""Attention = scorer x alignment x heads, wherever it is used.

Letters: B batch, T queries, S keys, D width, H heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.blueprint import Blueprint
from zoo.errors import ZooError
from zoo.interfaces import Alignment, Mask, Scorer
from zoo.signature import Given


class Attention(nn.Module):
    r"""Mixes values by how well their keys answer a query.

    .. math:: c_t = \sum_s \alpha_{ts} v_s, \qquad \alpha_t = \mathrm{align}(\mathrm{score}(q_t, k))

    One head without projections attends to the memory as it is (Bahdanau, Luong); several heads
    project queries, keys and values each their own way (Vaswani).

    Args:
        query_dim: width of the queries.
        key_dim: width of the memory, from which keys and values are made.
        scorer: scores queries against keys; every head has its own.
        align: turns scores into weights.
        heads: how many looks are taken at once.
        head_dim: width of a head's queries, keys and values; query_dim / heads if not set.
        merge: heads side by side, or their mean.
        project: 'qkv' gives queries, keys and values projections of their own, 'kv' lets one
            projection serve keys and values, 'none' leaves all as they are; 'auto' is 'none'
            for one head and 'qkv' for more. Projected heads are merged through a last linear
            map to query_dim.
        bias: whether the projections have one.

    Shapes:
        query [B, T, query_dim], memory [B, S, key_dim] -> context [B, T, output_dim].
    """

    widths: ClassVar[tuple[str, ...]] = ("output_dim",)
    observed: ClassVar[str] = "attend"

    def __init__(
        self,
        *,
        query_dim: Given[int],
        key_dim: Given[int],
        scorer: Blueprint[Scorer],
        align: Blueprint[Alignment],
        heads: Annotated[int, Field(ge=1, le=256)] = 1,
        head_dim: Annotated[int, Field(ge=1)] | None = None,
        merge: Literal["concat", "mean"] = "concat",
        project: Literal["auto", "none", "qkv", "kv"] = "auto",
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.merge = merge
        self.project = ("none" if heads == 1 else "qkv") if project == "auto" else project
        self.recorder: list[Tensor] | None = None
        if self.project == "none":
            if head_dim is not None:
                raise ZooError("head_dim has no meaning without projections; set project: qkv")
            inner_query, inner_key = query_dim, key_dim
        else:
            if head_dim is None and query_dim % heads:
                raise ZooError(
                    f"heads ({heads}) must divide query_dim ({query_dim}), or set head_dim"
                )
            inner_query = inner_key = head_dim or query_dim // heads
            self.query = nn.Linear(query_dim, heads * inner_query, bias=bias)
            self.key = nn.Linear(key_dim, heads * inner_key, bias=bias)
            if self.project == "qkv":
                self.value = nn.Linear(key_dim, heads * inner_key, bias=bias)
        self.scorers = nn.ModuleList(
            scorer.build(query_dim=inner_query, key_dim=inner_key) for _ in range(heads)
        )
        self.align: Alignment = align.build(query_dim=query_dim)
        self.alike = not any(True for _ in self.scorers.parameters())
        if self.project == "none" and heads > 1 and self.alike:
            raise ZooError(
                f"{heads} heads without projections would be {heads} times the same head, "
                f"since scorer '{scorer.label}' has no parameters; set project: qkv"
            )
        self.output_dim = inner_key * (heads if merge == "concat" else 1)
        if self.project != "none":
            self.out = nn.Linear(self.output_dim, query_dim, bias=bias)
            self.output_dim = query_dim

    def forward(self, query: Tensor, memory: Tensor, mask: Mask | None = None) -> Tensor:
        """All at once; `prepare` and `attend` do it in two steps."""
        return self.attend(query, self.prepare(memory), mask)

    def prepare(self, memory: Tensor) -> dict[str, Tensor]:
        """What depends on the memory alone: keys [B, H, S, *] and values [B, H, S, D]."""
        if self.project == "none":
            keys = values = memory[:, None].expand(-1, self.heads, -1, -1)
        else:
            keys = self._split(self.key(memory))
            values = self._split(self.value(memory)) if self.project == "qkv" else keys
        if not self.alike:
            prepared = [scorer.prepare(keys[:, h]) for h, scorer in enumerate(self._scorers())]
            return {"keys": torch.stack(prepared, dim=1), "values": values}
        return {"keys": self._scorers()[0].prepare(keys), "values": values}

    def attend(
        self, query: Tensor, prepared: Mapping[str, Tensor], mask: Mask | None = None
    ) -> Tensor:
        """query [B, T, Dq], what `prepare` gave -> context [B, T, output_dim]."""
        mask = mask or Mask()
        keys, values = prepared["keys"], prepared["values"]
        if self.project == "none":
            queries = query[:, None].expand(-1, self.heads, -1, -1)  # [B, H, T, Dq]
        else:
            queries = self._split(self.query(query))
        context = self._fused(queries, keys, values, mask)
        if context is None:
            context = self._reference(queries, keys, values, mask)  # [B, H, T, Dv]
        side_by_side = context.transpose(1, 2).flatten(2)  # [B, T, H * Dv]
        merged = side_by_side if self.merge == "concat" else context.mean(dim=1)
        return self.out(merged) if self.project != "none" else merged

    def _fused(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Mask) -> Tensor | None:
        if self.recorder is not None or not self.align.is_softmax:
            return None
        if not self.alike and self.heads > 1:
            return None
        return self._scorers()[0].fused(queries, keys, values, mask)

    def _reference(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Mask) -> Tensor:
        if self.alike:
            scores = self._scorers()[0].score(queries, keys)
        else:
            each = [s.score(queries[:, h], keys[:, h]) for h, s in enumerate(self._scorers())]
            scores = torch.stack(each, dim=1)  # [B, H, T, S]
        dense = mask.dense(scores.shape[-2], scores.shape[-1], scores.device)
        weights = self.align(scores, None if dense is None else dense[:, None])
        if self.recorder is not None:
            self.recorder.append(weights.detach())
        context: Tensor = weights @ values
        return context

    def _scorers(self) -> list[Scorer]:
        return list(self.scorers)  # type: ignore[arg-type]

    def _split(self, states: Tensor) -> Tensor:
        """[B, S, H * D] -> [B, H, S, D]"""
        B, S, _ = states.shape
        return states.view(B, S, self.heads, -1).transpose(1, 2)


def fused_softmax(
    query: Tensor, keys: Tensor, values: Tensor, mask: Mask, *, scale: float
) -> Tensor:
    """Softmax attention over scale * query . key in torch's one kernel, for scorers to build on.

    query [B, H, T, D], keys [B, H, S, D], values [B, H, S, Dv] -> [B, H, T, Dv].
    """
    dense = mask.dense(query.shape[-2], keys.shape[-2], query.device)
    pairs = None if dense is None else dense[:, None]  # [B, 1, T, S]
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=pairs, scale=scale)


@contextmanager
def recording(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Every attention inside the model reports its weights while the block runs.

    Gives, for each attention by its name in the model, the weights [B, H, T, S] of each call.
    Outside such a block nothing is kept, and fused paths are free to run.
    """
    found = {name: m for name, m in model.named_modules() if isinstance(m, Attention)}
    log: dict[str, list[Tensor]] = {name: [] for name in found}
    for name, attention in found.items():
        attention.recorder = log[name]
    try:
        yield log
    finally:
        for attention in found.values():
            attention.recorder = None
