"""Attention: scorer, alignment and heads.

Notation: B batch, T queries, S keys, D width, H heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.attention.heads import (
    Linear,
    QueryKeyNorm,
    merge_heads,
    norm_heads,
    repeat_heads,
    rotate_heads,
    split_heads,
)
from zoo.attention.recorder import RecordsAttention
from zoo.attention.scorers import ScorerBank
from zoo.errors import ZooError
from zoo.interfaces import Alignment, AlignmentContext, Mask, Position, Scorer
from zoo.interfaces.signature import FromParent
from zoo.registry.blueprint import Blueprint


def add_position_bias(
    attention: Attention,
    mask: Mask | None,
    position: Position | None,
    query: Tensor,
    queries: Tensor,
    keys: Tensor,
    offset: int | Tensor,
) -> Mask:
    """Return the mask with the bias of the position, unless it already has it, and the bias that
    depends on the content of queries and keys.

    Args:
        query: the inputs of the queries [B, T, D].
        queries: queries of each head [B, H, T, d].
        keys: keys [B, Hkv, S, d].
    """
    mask = mask or Mask()
    if position is None:
        return mask
    if position.has_bias and mask.bias is None:
        mask = replace(mask, bias=position("bias", queries, keys, offset=offset))
    if not position.has_score_bias:
        return mask
    if attention.score_bias is None:
        raise ZooError(
            f"position '{position.name}' has a bias in each attention; call "
            "attention.set_position(position) once before"
        )
    keys = repeat_heads(keys, attention.heads)
    bias = attention.score_bias(attention, position, query, queries, keys, offset=offset)
    return replace(mask, bias=bias if mask.bias is None else mask.bias + bias)


def forbid_sequential(parts: Sequence[Scorer | Alignment], where: str) -> None:
    """Raise ZooError if a part depends on previous queries."""
    for part in parts:
        if part.sequential:
            raise ZooError(
                f"{part.kind} '{part.name}' depends on previous queries, "
                f"but {where} processes all queries in parallel; use another {part.kind} or "
                "a recurrent decoder"
            )


def forbid_rotary(scorer: Scorer, position: Position | None) -> None:
    """Raise ZooError if the position requires an inner product, which the scorer is not."""
    if position is None or scorer.supports_rotary:
        return
    if position.is_rotary or position.requires_inner_product:
        what = "rotates" if position.is_rotary else "compares positions with"
        raise ZooError(
            f"position '{position.name}' {what} queries and keys, which requires an inner "
            f"product, but the score of scorer '{scorer.name}' is not an inner product; use "
            "another scorer, for example scaled-dot"
        )


def resolve_project(project: str, scorer: Blueprint[Scorer], heads: int) -> str:
    """Return the projections of 'auto'; raise ZooError if one would get no gradient."""
    ignores_keys = scorer.cls.ignores_keys
    if project == "auto":
        return "none" if heads == 1 else "kv" if ignores_keys else "qkv"
    if project == "qkv" and ignores_keys:
        raise ZooError(
            f"scorer '{scorer.label}' ignores keys, so their projection would get no gradient; set "
            "project: kv"
        )
    return project


@dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """Parameters of an attention that most models do not set; `Attention` documents them."""

    bias: bool | Literal["qkv", "qvo", "out"] = True
    norm: Blueprint[QueryKeyNorm] | None = None

    @property
    def biased(self) -> str:
        """The projections with a bias: a part of 'qkvo', the initials of query to output."""
        if isinstance(self.bias, bool):
            return "qkvo" if self.bias else ""
        return "o" if self.bias == "out" else self.bias


DEFAULT_OPTIONS = AttentionOptions()


class Attended(NamedTuple):
    """Output of an attention.

    Attributes:
        context: [B, T, output_dim].
        state: the updated state; empty if none is needed.
        weights: [B, H, T, S] if they were requested, else None.
    """

    context: Tensor
    state: dict[str, Tensor]
    weights: Tensor | None


class Attention(RecordsAttention):
    r"""Attention: weighted sum of values, with weights from a scorer and an alignment.

    .. math:: c_t = \sum_s \alpha_{ts} v_s, \qquad \alpha_t = \mathrm{align}(\mathrm{score}(q_t, k))

    A single head without projections attends to the states themselves (Bahdanau, Luong); multi-head
    attention projects queries, keys and values (Vaswani).

    Args:
        query_dim: width of the queries.
        key_dim: width of the states from which keys and values are computed.
        scorer: computes the scores; each head has its own.
        align: normalises the scores into weights.
        heads: number of heads.
        kv_heads: number of heads of keys and values, each shared by several query heads (Ainslie
            2023); equal to heads if not set.
        head_dim: width of the queries, keys and values of a head; query_dim / heads if not set.
        merge: concatenate the heads, or average them.
        project: 'qkv' projects queries, keys and values, 'kv' uses one projection for keys and
            values, 'none' uses no projections. 'auto' is 'none' for one head and 'qkv' for several
            ('kv' if the scorer ignores keys). With projections, the merged heads are projected to
            query_dim.
        bias: whether the projections have a bias; 'qkv' adds a bias to all projections except the
            output projection, 'qvo' to all except that of the keys, which does not change a softmax
            over dot products, 'out' only to the output projection.
        norm: kind of the norms of projected queries and keys, before they are rotated; none if
            not set.

    Shapes:
        query [B, T, query_dim], states [B, S, key_dim] -> context [B, T, output_dim].
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
        options: AttentionOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__()
        biased = options.biased
        self.query_dim, self.key_dim = query_dim, key_dim
        self.heads, self.kv_heads, self.merge = heads, kv_heads or heads, merge
        self.project = resolve_project(project, scorer, heads)
        if heads % self.kv_heads:
            raise ZooError(f"heads ({heads}) must be divisible by kv_heads ({kv_heads})")
        if self.project == "none":
            if head_dim is not None or kv_heads is not None:
                name = "head_dim" if head_dim is not None else "kv_heads"
                raise ZooError(f"{name} requires projections; set project: qkv")
            self.head_dim, inner_key_dim = query_dim, key_dim
        else:
            if head_dim is None and query_dim % heads:
                raise ZooError(
                    f"query_dim ({query_dim}) must be divisible by heads ({heads}), or set head_dim"
                )
            self.head_dim = inner_key_dim = head_dim or query_dim // heads
            self.query = Linear(query_dim, heads * inner_key_dim, bias="q" in biased)
            self.key = Linear(key_dim, self.kv_heads * inner_key_dim, bias="k" in biased)
            if self.project == "qkv":
                self.value = Linear(key_dim, self.kv_heads * inner_key_dim, bias="v" in biased)
        self.query_norm, self.key_norm = self._build_norms(options.norm)
        self.scorers = ScorerBank(scorer, heads, query_dim=self.head_dim, key_dim=inner_key_dim)
        self.align: Alignment = align.build(query_dim=self.head_dim, heads=heads)
        self.score_bias: nn.Module | None = None
        if self.project == "none" and heads > 1 and self.scorers.shared:
            raise ZooError(
                f"{heads} heads without projections are identical, because scorer "
                f"'{scorer.label}' has no parameters; set project: qkv"
            )
        self.output_dim = inner_key_dim * (heads if merge == "concat" else 1)
        if self.project != "none":
            self.out = Linear(self.output_dim, query_dim, bias="o" in biased)
            self.output_dim = query_dim

    def forward(
        self,
        query: Tensor,
        memory: Tensor | Mapping[str, Tensor],
        mask: Mask | None = None,
        *,
        position: Position | None = None,
        offset: int | Tensor = 0,
        state: Mapping[str, Tensor] | None = None,
        return_weights: bool = False,
    ) -> Attended:
        """Compute the context [B, T, output_dim] of query [B, T, query_dim].

        Args:
            memory: the states [B, S, key_dim] to attend to, or the output of `prepare`.
            mask: attention mask; every query attends to every key if it is None.
            position: rotates queries (and keys, if they are not prepared) or adds a bias, unless
                the mask already has one.
            offset: position of the first query.
            state: output of `init_state` or of the previous call. If it is not empty, the query is
                one step ([B, 1, query_dim]).
            return_weights: also return the weights.
        """
        queries, prepared = self.project_inputs(query, memory, position=position, offset=offset)
        keys, values = (repeat_heads(prepared[name], self.heads) for name in ("keys", "values"))
        mask = add_position_bias(self, mask, position, query, queries, keys, offset)
        scores, updated = self._score(queries, keys, state or {})  # [B, H, T, S]
        weights = self._align(scores, mask, queries, offset, state or {})
        if self.sequential and state:
            updated["weights"] = weights[:, :, 0]
        context = self.project_output(weights @ values)
        return Attended(context, updated, weights if return_weights else None)

    def project_inputs(
        self,
        query: Tensor,
        memory: Tensor | Mapping[str, Tensor],
        *,
        position: Position | None = None,
        offset: int | Tensor = 0,
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Compute the queries of each head [B, H, T, Dq], and the output of `prepare`."""
        if isinstance(memory, Tensor):
            memory = self.prepare(memory, position=position, offset=offset)
        return self.prepare_queries(self.project_queries(query), position, offset), memory

    def project_queries(self, states: Tensor) -> Tensor:
        """Project states [B, T, query_dim] to queries [B, H, T, Dq]."""
        if self.project == "none":
            return states[:, None].expand(-1, self.heads, -1, -1)
        return split_heads(self.query(states), self.heads)

    def project_keys(self, states: Tensor) -> Tensor:
        """Project states [B, S, key_dim] to keys [B, Hkv, S, Dk]."""
        if self.project == "none":
            return states[:, None].expand(-1, self.heads, -1, -1)
        return split_heads(self.key(states), self.kv_heads)

    def prepare_queries(
        self, queries: Tensor, position: Position | None, offset: int | Tensor
    ) -> Tensor:
        """Normalise and rotate projected queries [B, H, T, Dq]."""
        return rotate_heads(norm_heads(queries, self.query_norm), position, offset)

    def prepare_keys(self, keys: Tensor, position: Position | None, offset: int | Tensor) -> Tensor:
        """Normalise and rotate projected keys [B, Hkv, S, Dk]."""
        return rotate_heads(norm_heads(keys, self.key_norm), position, offset)

    def prepare(
        self, memory: Tensor, *, position: Position | None = None, offset: int | Tensor = 0
    ) -> dict[str, Tensor]:
        """Compute keys [B, Hkv, S, *] and values [B, Hkv, S, D] of the states [B, S, key_dim]."""
        keys = values = self.project_keys(memory)
        if self.project == "qkv":
            values = split_heads(self.value(memory), self.kv_heads)
        return self.prepare_heads(keys, values, position, offset)

    def prepare_heads(
        self, keys: Tensor, values: Tensor, position: Position | None, offset: int | Tensor
    ) -> dict[str, Tensor]:
        """Return the output of `prepare` for projected keys and values, both [B, Hkv, S, *]."""
        keys = self.prepare_keys(keys, position, offset)
        if not self.scorers.shared:
            keys = repeat_heads(keys, self.heads)
        return {"keys": self.scorers.prepare(keys), "values": values}

    def init_state(self, prepared: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the state before the first query: tensors [B, ...], empty if none is needed."""
        keys = repeat_heads(prepared["keys"], self.heads)
        state: dict[str, Tensor] = {}
        if self.sequential or self.align.needs_step_index:
            state["step"] = keys.new_zeros(keys.shape[0], dtype=torch.long)
        if self.sequential:
            state["weights"] = keys.new_zeros(keys.shape[:3])
            state |= self.scorers.init_state(keys)
        return state

    @property
    def sequential(self) -> bool:
        """Whether the weights of a query depend on previous queries."""
        return self.align.sequential or self.scorers.sequential

    @property
    def stochastic_part(self) -> nn.Module | None:
        return self.align if self.align.is_stochastic else None

    def forbid_sequential(self, where: str) -> None:
        """Raise ZooError if this attention is sequential, for modules that run in parallel."""
        forbid_sequential((self.scorers.first, self.align), where)

    def set_position(self, position: Position) -> None:
        """Build the score bias of a position encoding, if it has one.

        Raises ZooError if the scorer does not support the position. `forward` takes a position
        without a score bias also if it was not set.
        """
        forbid_rotary(self.scorers.first, position)
        self.score_bias = position.build_score_bias(self.query_dim)

    def extra_repr(self) -> str:
        names = ("query_dim", "key_dim", "heads", "kv_heads", "head_dim", "merge", "project")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    def project_output(self, context: Tensor) -> Tensor:
        """Merge and project the heads: [B, H, T, Dv] -> [B, T, output_dim]."""
        merged = merge_heads(context, self.merge)
        output: Tensor = self.out(merged) if self.project != "none" else merged
        return output

    def _build_norms(
        self, norm: Blueprint[QueryKeyNorm] | None
    ) -> tuple[nn.Module | None, nn.Module | None]:
        if norm is None:
            return None, None
        if self.project != "qkv":
            raise ZooError("norm requires projections of queries and keys; set project: qkv")
        norms = norm.build()
        return norms.build(self.heads, self.head_dim), norms.build(self.kv_heads, self.head_dim)

    def _score(
        self, queries: Tensor, keys: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the scores [B, H, T, S] and the updated state."""
        if not state:
            return self.scorers(queries, keys, prepared=True), {}
        updated = {**state, "step": state["step"] + 1}
        if not self.sequential:
            return self.scorers(queries, keys, prepared=True), updated
        scores, scorer_state = self.scorers(queries, keys, prepared=True, state=state)
        return scores, updated | scorer_state

    def _align(
        self,
        scores: Tensor,
        mask: Mask,
        queries: Tensor,
        offset: int | Tensor,
        state: Mapping[str, Tensor],
    ) -> Tensor:
        """Compute the weights [B, H, T, S] and record them."""
        context = AlignmentContext(queries, state.get("step", offset), state.get("weights"))
        if mask.bias is not None:
            scores = scores + mask.bias.to(scores.dtype)
        dense = mask.dense(scores.shape[-2], scores.shape[-1], scores.device)
        align_mask = None if dense is None else dense[:, None]  # [B, 1, T, S]
        weights: Tensor
        samples = None
        if self.is_recording_samples and self.align.is_stochastic:
            weights, samples = self.align(scores, align_mask, context, return_samples=True)
        else:
            weights = self.align(scores, align_mask, context)
        self.record(weights, samples)
        return weights
