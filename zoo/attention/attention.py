"""Attention = scorer x alignment x heads, wherever it is used.

Letters: B batch, T queries, S keys, D width, H heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.attention.hooks import has_hooks
from zoo.attention.recorder import RecordsAttention
from zoo.attention.scorer_bank import ScorerBank
from zoo.errors import ZooError
from zoo.interfaces import Alignment, AlignmentContext, Mask, Position, Scorer
from zoo.interfaces.signature import FromParent
from zoo.registry.blueprint import Blueprint


class Attention(RecordsAttention):
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
        kv_heads: how many heads keys and values have, each serving several heads of queries
            (Ainslie 2023); as many as heads if not set.
        head_dim: width of a head's queries, keys and values; query_dim / heads if not set.
        merge: heads side by side, or their mean.
        project: 'qkv' gives queries, keys and values projections of their own, 'kv' lets one
            projection serve keys and values, 'none' leaves all as they are; 'auto' is 'none'
            for one head and 'qkv' for more ('kv' if the scorer ignores keys). Projected heads are
            merged through a last linear map to query_dim.
        bias: whether the projections have one; 'qkv' for all but the last.

    Shapes:
        query [B, T, query_dim], memory [B, S, key_dim] -> context [B, T, output_dim].
    """

    widths: ClassVar[tuple[str, ...]] = ("output_dim",)

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        scorer: Blueprint[Scorer],
        align: Blueprint[Alignment],
        heads: Annotated[int, Field(ge=1, le=256)] = 1,
        kv_heads: Annotated[int, Field(ge=1)] | None = None,
        head_dim: Annotated[int, Field(ge=1)] | None = None,
        merge: Literal["concat", "mean"] = "concat",
        project: Literal["auto", "none", "qkv", "kv"] = "auto",
        bias: bool | Literal["qkv"] = True,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.kv_heads = kv_heads or heads
        self.merge = merge
        ignores_keys = scorer.cls.ignores_keys
        several = "kv" if ignores_keys else "qkv"
        self.project = ("none" if heads == 1 else several) if project == "auto" else project
        if heads % self.kv_heads:
            raise ZooError(f"heads ({heads}) must be divisible by kv_heads ({kv_heads})")
        if ignores_keys and self.project == "qkv":
            raise ZooError(
                f"scorer '{scorer.label}' looks at places alone, so a projection of keys would "
                "learn nothing; set project: kv"
            )
        if self.project == "none":
            if head_dim is not None or kv_heads is not None:
                name = "head_dim" if head_dim is not None else "kv_heads"
                raise ZooError(f"{name} has no meaning without projections; set project: qkv")
            self.query_dim, inner_key = query_dim, key_dim
        else:
            if head_dim is None and query_dim % heads:
                raise ZooError(
                    f"heads ({heads}) must divide query_dim ({query_dim}), or set head_dim"
                )
            self.query_dim = inner_key = head_dim or query_dim // heads
            self.query = nn.Linear(query_dim, heads * inner_key, bias=bool(bias))
            self.key = nn.Linear(key_dim, self.kv_heads * inner_key, bias=bool(bias))
            if self.project == "qkv":
                self.value = nn.Linear(key_dim, self.kv_heads * inner_key, bias=bool(bias))
        self.scorers = ScorerBank(scorer, heads, query_dim=self.query_dim, key_dim=inner_key)
        self.align: Alignment = align.build(query_dim=self.query_dim)
        if self.project == "none" and heads > 1 and self.scorers.shared:
            raise ZooError(
                f"{heads} heads without projections would be {heads} times the same head, "
                f"since scorer '{scorer.label}' has no parameters; set project: qkv"
            )
        self.output_dim = inner_key * (heads if merge == "concat" else 1)
        if self.project != "none":
            self.out = nn.Linear(self.output_dim, query_dim, bias=bias is True)
            self.output_dim = query_dim

    def forward(
        self,
        query: Tensor,
        memory: Tensor | Mapping[str, Tensor],
        mask: Mask | None = None,
        *,
        state: Mapping[str, Tensor] | None = None,
        position: Position | None = None,
        offset: int | Tensor = 0,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """query [B, T, Dq], memory [B, S, key_dim] -> context [B, T, output_dim].

        Args:
            memory: keys and values as one tensor, or the output of `prepare`.
            mask: which keys each query attends to.
            state: output of `init_state` or of the previous call. If set, the query is the next
                single one ([B, 1, Dq]) and the updated state is returned with the context.
            position: rotates queries (and keys, if they are not prepared) or adds a bias.
            offset: position of the first query.
        """
        prepared = (
            self.prepare(memory, position=position, offset=offset)
            if isinstance(memory, Tensor)
            else memory
        )
        if state is None:
            return self._attend(query, prepared, mask or Mask(), position, offset)
        return self._step(query, prepared, state, mask or Mask())

    def prepare(
        self, memory: Tensor, *, position: Position | None = None, offset: int | Tensor = 0
    ) -> dict[str, Tensor]:
        """What depends on the memory alone: keys [B, Hkv, S, *] and values [B, Hkv, S, D]."""
        if self.project == "none":
            keys = values = memory[:, None].expand(-1, self.heads, -1, -1)
        else:
            keys = self._split_heads(self.key(memory), self.kv_heads)
            values = (
                self._split_heads(self.value(memory), self.kv_heads)
                if self.project == "qkv"
                else keys
            )
        if position is not None:
            keys = position("rotate", keys, offset=offset)
        if not self.scorers.shared:
            keys = self._repeat_kv(keys)
        return {"keys": self.scorers.prepare(keys), "values": values}

    def init_state(self, prepared: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the state before the first query: tensors [B, ...], none if not sequential."""
        keys = self._repeat_kv(prepared["keys"])
        state: dict[str, Tensor] = {}
        if self.sequential or self.align.needs_step_index:
            state["step"] = keys.new_zeros(keys.shape[0], dtype=torch.long)
        if self.sequential:
            state["weights"] = keys.new_zeros(keys.shape[:3])
            state |= self.scorers.init_state(keys)
        return state

    def _attend(
        self,
        query: Tensor,
        prepared: Mapping[str, Tensor],
        mask: Mask,
        position: Position | None = None,
        offset: int | Tensor = 0,
    ) -> Tensor:
        """Process all queries in parallel."""
        queries = self._project_query(query, position, offset)
        keys, values = self._repeat_kv(prepared["keys"]), self._repeat_kv(prepared["values"])
        if position is not None:
            mask = replace(mask, bias=position("bias", queries, keys, offset=offset))
        context = self._fused(queries, keys, values, mask)
        if context is None:
            scores = self.scorers(queries, keys, prepared=True)  # [B, H, T, S]
            align_context = AlignmentContext(queries, offset)
            context = self._compute_weights(scores, mask, align_context) @ values  # [B, H, T, Dv]
        return self._merge_heads(context)

    def _step(
        self,
        query: Tensor,
        prepared: Mapping[str, Tensor],
        state: Mapping[str, Tensor],
        mask: Mask,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Process the next query [B, 1, Dq] -> its context [B, 1, output_dim], the new state."""
        if not state:
            return self._attend(query, prepared, mask), {}
        updated = dict(state)
        updated["step"] = state["step"] + 1
        if not self.sequential:
            return self._attend(query, prepared, mask, offset=state["step"]), updated
        queries = self._project_query(query, None, 0)
        keys, values = self._repeat_kv(prepared["keys"]), self._repeat_kv(prepared["values"])
        scores, scorer_state = self.scorers.step(queries, keys, state, state["weights"])
        align_context = AlignmentContext(queries, state["step"], state["weights"])
        weights = self._compute_weights(scores, mask, align_context)  # [B, H, 1, S]
        updated |= scorer_state
        updated["weights"] = weights[:, :, 0]
        return self._merge_heads(weights @ values), updated

    @property
    def sequential(self) -> bool:
        """Whether the weights of one query depend on those of the query before."""
        return self.align.sequential or self.scorers.sequential

    def forbid_sequential(self, where: str) -> None:
        """Raise where all queries are answered at once, if this attention cannot do that."""
        parts: list[Scorer | Alignment] = [self.scorers.first, self.align]
        for part in parts:
            if part.sequential:
                raise ZooError(
                    f"{part.kind} '{part.name}' needs to know where the query before looked, "
                    f"but {where} answers all queries at once"
                )

    def forbid_rotary(self, position: Position | None) -> None:
        """Raise if the position turns queries and keys of a scorer that would not understand."""
        if position is not None and position.is_rotary and not self.scorers.first.supports_rotary:
            raise ZooError(
                f"position '{position.name}' turns queries and keys, which has a meaning for plain "
                f"inner products only, not for scorer '{self.scorers.first.name}'"
            )

    def _fused(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Mask) -> Tensor | None:
        """Compute the context in one kernel, or return None where the reference path is needed.

        The fused path does not call the scorer and the alignment, so it is not used while hooks
        are registered on them.
        """
        if self.is_recording or not self.align.is_softmax:
            return None
        if not self.scorers.shared and self.heads > 1:
            return None
        if has_hooks(self.scorers) or has_hooks(self.align):
            return None
        return self.scorers.first.fused(queries, keys, values, mask)

    def _compute_weights(self, scores: Tensor, mask: Mask, context: AlignmentContext) -> Tensor:
        if mask.bias is not None:
            scores = scores + mask.bias.to(scores.dtype)
        dense = mask.dense(scores.shape[-2], scores.shape[-1], scores.device)
        allowed = None if dense is None else dense[:, None]  # [B, 1, T, S]
        samples = None
        if self.is_recording_samples and self.align.is_stochastic:
            weights, samples = self.align(scores, allowed, context, return_samples=True)
        else:
            weights = self.align(scores, allowed, context)
        self.record(weights, samples)
        result: Tensor = weights
        return result

    def _project_query(
        self, query: Tensor, position: Position | None, offset: int | Tensor
    ) -> Tensor:
        """-> [B, H, T, Dq]"""
        if self.project == "none":
            queries = query[:, None].expand(-1, self.heads, -1, -1)
        else:
            queries = self._split_heads(self.query(query), self.heads)
        if position is not None:
            queries = position("rotate", queries, offset=offset)
        return queries

    def _merge_heads(self, context: Tensor) -> Tensor:
        side_by_side = context.transpose(1, 2).flatten(2)  # [B, T, H * Dv]
        merged = side_by_side if self.merge == "concat" else context.mean(dim=1)
        return self.out(merged) if self.project != "none" else merged

    def _split_heads(self, states: Tensor, heads: int) -> Tensor:
        """[B, S, H * D] -> [B, H, S, D]"""
        B, S, _ = states.shape
        return states.view(B, S, heads, -1).transpose(1, 2)

    def _repeat_kv(self, shared: Tensor) -> Tensor:
        """Keys or values [B, Hkv, S, D] repeated for the heads they serve: [B, H, S, D]."""
        served = self.heads // shared.shape[1]
        return shared if served == 1 else shared.repeat_interleave(served, dim=1)
