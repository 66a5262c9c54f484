"""Launches of the Triton kernels of attention with additive scores.

Notation: B batch, H heads, N = B * H, T queries, S keys, D hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zoo_fast.attention.attention_plan import AttentionPlan
from zoo_fast.attention.kernels import additive_softmax
from zoo_fast.attention.kernels.additive_triton import exponentials, triton_gradients, triton_scores

CHUNK = 2**25
"""Number of scores [N, t, S] that are in memory at a time."""
LARGEST_ROW = 4096
"""Number of scores of a query that a program loads at a time."""

Terms = tuple[Tensor, Tensor, Tensor]
Inputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]
"""a [B, H, T, D], b [B, H, S, D], v [D] or [H, D], values [B, Hv, S, Dv], bias [H or 1, T, S]."""


def attend(inputs: Inputs, plan: AttentionPlan) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the context [B, H, T, Dv] and the tensors that the backward pass needs.

    Weights are kept for the backward pass if all are in memory at a time, else computed again.
    """
    a, b, v, values, bias = inputs
    (B, H, T, _), (S, Dv) = a.shape, values.shape[-2:]
    terms, flat_values = _flat_terms(a, b, v), _flatten(values)
    if _is_one_query(inputs, plan):
        return _attend_one(terms, flat_values, plan, H).view(B, H, T, Dv), ()
    exps = exponentials(*terms[:2])
    maxima = exps[2]
    softmax = _Softmax(plan, bias, H, T, S)
    contexts: list[Tensor] = []
    chunks = _chunks(B * H, T, S)
    for t in chunks:
        scores = _slice_scores(terms, exps, t, plan)
        if t.stop == T:
            del exps
        weights, kept = softmax.forward(scores, t, values.dtype)
        contexts.append((_grouped(kept, flat_values) @ flat_values).view(B, H, -1, Dv))
    if len(contexts) == 1:
        return contexts[0], (weights, maxima)
    return torch.cat(contexts, dim=2), ()


def attend_backward(
    inputs: Inputs, plan: AttentionPlan, saved: Sequence[Tensor], grad_output: Tensor
) -> tuple[Tensor | None, ...]:
    """Compute the gradients of the inputs from that of the context."""
    a, b, v, values, bias = inputs
    (B, H, T, _), S = a.shape, b.shape[-2]
    terms, flat_values = _flat_terms(a, b, v), _flatten(values)
    exps = None if saved else exponentials(*terms[:2])
    softmax = _Softmax(plan, bias, H, T, S)
    chunks = _chunks(B * H, T, S)
    dtype = b.dtype if len(chunks) == 1 else torch.float32
    grads_a: list[Tensor] = []
    sums: list[Tensor] = []
    grad_bias = None if bias is None else torch.zeros_like(bias, dtype=torch.float32)
    for t in chunks:
        if exps is None:
            weights, maxima = saved
        else:
            scores = _slice_scores(terms, exps, t, plan)
            weights, maxima = softmax.forward(scores, t, values.dtype, drop=False)[0], exps[2]
            del scores
        g_context = _grouped(_flatten(_rows(grad_output, t)), flat_values)
        g = (g_context @ flat_values.transpose(1, 2)).view_as(weights)  # of the weights
        kept = softmax.backward(weights, g, t)  # and sets g to the gradient of the scores
        grad_a, grad_b, grad_v = triton_gradients(
            (_rows(terms[0], t).contiguous(), *terms[1:]),
            maxima,
            g,
            causal=_causal(plan, t),
            dtype=dtype,
        )
        if grad_bias is not None:
            per_head = g.view(B, H, -1, S).sum(dim=0, dtype=torch.float32)
            grad_bias[:, t] = per_head.sum_to_size(grad_bias[:, t].shape)
        del g
        grad_values = _grouped(kept, flat_values).transpose(1, 2) @ g_context
        grads_a.append(grad_a.to(a.dtype))
        grads = [grad_b, grad_v, grad_values if len(chunks) == 1 else grad_values.to(dtype)]
        sums = [x.add_(y) for x, y in zip(sums, grads, strict=True)] if sums else grads
    return (
        (grads_a[0] if len(chunks) == 1 else torch.cat(grads_a, dim=1)).view_as(a),
        *(x.to(part.dtype).view_as(part) for x, part in zip(sums, (b, v, values), strict=True)),
        None if bias is None or grad_bias is None else grad_bias.to(bias.dtype),
    )


def dropout_factors(weights: Tensor, plan: AttentionPlan) -> Tensor:
    """Return 1 / (1 - p) where a weight [B, H, T, S] is kept, and 0 where it is dropped."""
    B, H, T, S = weights.shape
    softmax = _Softmax(AttentionPlan(None, None, plan.dropout_p, plan.seed), None, H, T, S)
    scores = torch.zeros(B * H, T, S, dtype=torch.float32, device=weights.device)
    _, uniform = softmax.forward(scores, slice(0, T), torch.float32)
    return (uniform * S).view_as(weights).to(weights.dtype)


@dataclass(frozen=True)
class _Softmax:
    """Softmax of slices of the scores, with mask, bias and dropout."""

    plan: AttentionPlan
    bias: Tensor | None
    H: int
    T: int
    S: int

    def forward(
        self, scores: Tensor, t: slice, dtype: torch.dtype, *, drop: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return weights [N, t, S] before and after dropout."""
        (N, T, S), plan = scores.shape, self.plan
        weights = torch.empty_like(scores, dtype=dtype)
        seed = plan.seed if drop else None
        kept = weights if seed is None else torch.empty_like(weights)
        additive_softmax.weights[(N * T,)](
            scores, plan.mask, self.bias, seed, weights, kept, T, S, self.H, t.start, self.T,
            plan.causal or 0, *_strides(plan.mask), *_strides(self.bias), plan.dropout_p,
            CAUSAL=plan.causal is not None, **self._row(),
        )  # fmt: skip
        return weights, kept

    def backward(self, weights: Tensor, grad: Tensor, t: slice) -> Tensor:
        """Replace the gradient of the weights by that of the scores, and return the weights after
        dropout."""
        (N, T, S), seed = weights.shape, self.plan.seed
        kept = weights if seed is None else torch.empty_like(weights)
        additive_softmax.weights_gradient[(N * T,)](
            weights, seed, grad, kept, T, S, t.start, self.T, self.plan.dropout_p, **self._row()
        )
        return kept

    def _row(self) -> dict[str, int]:
        block = min(next_power_of_2(self.S), LARGEST_ROW)
        return {"SB": block, "num_warps": max(1, min(8, block // 256))}


def _attend_one(terms: Terms, values: Tensor, plan: AttentionPlan, H: int) -> Tensor:
    """Return the context [N, Dv] of one query for each item and head."""
    a, b, v = terms
    (N, _, D), (S, Dv), v = a.shape, values.shape[1:], v.expand(H, -1).contiguous()
    scores, context = a.new_empty(N, S, dtype=torch.float32), values.new_empty(N, Dv)
    units = next_power_of_2(Dv)
    additive_softmax.attend_one[(N,)](
        a, b, v, values, plan.mask, scores, context, S, D, Dv, H, N // values.shape[0],
        _strides(plan.mask)[0],
        ROW=next_power_of_2(S), SB=min(64, 2**15 // units),
        DB=min(128, next_power_of_2(D)), DVB=units, num_warps=16,
    )  # fmt: skip
    return context


def _is_one_query(inputs: Inputs, plan: AttentionPlan) -> bool:
    """Whether one program computes the context of a query: without bias and dropout, if the keys
    are few or the queries occupy a GPU."""
    a, _, _, values, bias = inputs
    (B, H, T, _), (S, Dv) = a.shape, values.shape[-2:]
    is_plain = bias is None and plan.causal is None and not plan.dropout_p
    is_small = Dv <= 2048 and S <= LARGEST_ROW and (S <= 1024 or B * H >= 64)
    return T == 1 and is_plain and is_small


def _slice_scores(
    terms: Terms, exps: tuple[Tensor, Tensor, Tensor], t: slice, plan: AttentionPlan
) -> Tensor:
    """Compute the scores [N, t, S]."""
    a, b, v = terms
    queries, exp_queries = (_rows(x, t).contiguous() for x in (a, exps[0]))
    return triton_scores((queries, b, v), (exp_queries, *exps[1:]), causal=_causal(plan, t))


def _rows(x: Tensor, t: slice) -> Tensor:
    """Select queries of x [..., T, C]; x itself if they are all, since slices take time."""
    return x if t.stop - t.start == x.shape[-2] else x[..., t, :]


def _causal(plan: AttentionPlan, t: slice) -> int | None:
    return None if plan.causal is None else plan.causal + t.start


def _chunks(N: int, T: int, S: int) -> list[slice]:
    step = max(1, CHUNK // (N * S))
    return [slice(first, min(first + step, T)) for first in range(0, T, step)]


def next_power_of_2(x: int) -> int:
    return 1 << (x - 1).bit_length()


def _flat_terms(a: Tensor, b: Tensor, v: Tensor) -> Terms:
    """Return a [N, T, D], b [N, S, D] and v [H, D], or [1, D] if all heads have the same."""
    return _flatten(a), _flatten(b), v.contiguous().view(-1, v.shape[-1])


def _flatten(x: Tensor) -> Tensor:
    """[B, H, R, C] -> [N, R, C], contiguous."""
    return x.reshape(-1, *x.shape[-2:]).contiguous()


def _grouped(x: Tensor, values: Tensor) -> Tensor:
    """Join the queries of heads that share values: [N, T, C] -> [B * Hv, N / (B * Hv) * T, C]."""
    return x.view(values.shape[0], -1, x.shape[-1])


def _strides(x: Tensor | None) -> tuple[int, int]:
    """Return the strides of the first two dimensions, 0 if their size is 1."""
    if x is None:
        return 0, 0
    assert x.stride(-1) == 1 or x.shape[-1] == 1
    return tuple(0 if x.shape[i] == 1 else x.stride(i) for i in range(2))  # type: ignore[return-value]
