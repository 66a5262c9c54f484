"""Random sampling from logits with kernels, without the probabilities of the whole vocabulary.

Notation: B items, V vocabulary, R rows, C chunks of a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from zoo.generation.search import NextTokens
from zoo.plugin import SearchState
from zoo_fast.device.triton_support import dependent_launch
from zoo_fast.sampling.keep_rules import KeepRule
from zoo_fast.sampling.kernels import race_triton, threshold_triton
from zoo_fast.sampling.kernels.candidates import empty_selection

BLOCK = 2048
_RULES = {
    "all": race_triton.ALL,
    "weight": race_triton.WEIGHT,
    "count": race_triton.COUNT,
    "mass": race_triton.MASS,
}
_LOWEST_BITS = {torch.bfloat16: 16, torch.float16: 12, torch.float32: 0}
"""The lowest bits of a float32 that are 0 in values of a dtype, a multiple of 4."""


@dataclass(frozen=True)
class _Threshold:
    """Results of the passes of `sum_above`: start [R], the others [R, C, DIGITS]."""

    start: Tensor
    first_sums: Tensor
    sums: Tensor
    equals: Tensor


def race_step(logits: Tensor, noise: Tensor, search: SearchState, rule: KeepRule) -> NextTokens:
    """Sample a token of each row, given logits and exponential noise [B, 1, V]."""
    B, _, V = logits.shape
    rows = logits.reshape(B, V)
    rows = rows if rows.stride(-1) == 1 else rows.contiguous()
    block = min(BLOCK, max(triton.next_power_of_2(V), threshold_triton.GROUP.value))
    C = triton.cdiv(V, block)
    excluded = -1 if search.task.selects_pad else search.task.pad
    new = search.scores.new_empty
    highest, total = (new(B, C, dtype=torch.float32) for _ in range(2))
    row_args = (V, rows.stride(0), excluded)
    pdl = dependent_launch(logits)
    threshold_triton.summarise_chunks[(B, C)](rows, highest, total, *row_args, BLOCK=block, **pdl)
    rule_args = (1 / rule.temperature, *_as_two_floats(rule.bound))
    found = _find_threshold(rows, highest, rule, (*row_args, *rule_args), block)
    values, tokens = new(B, C, dtype=torch.float32), new(B, C, dtype=torch.long)
    race_triton.race_in_chunks[(B, C)](
        rows,
        noise,
        highest,
        found.start,
        found.first_sums,
        found.sums,
        found.equals,
        values,
        tokens,
        *row_args,
        *rule_args,
        RULE=_RULES[rule.kind],
        SHIFT=_LOWEST_BITS[logits.dtype],
        BLOCK=block,
        BC=triton.next_power_of_2(C),
        num_warps=8,
        **pdl,
    )
    selection, invalid = empty_selection(search), torch.empty_like(search.finished)
    race_triton.select_winner[(B,)](
        rows,
        values,
        tokens,
        highest,
        total,
        search.finished.contiguous().view(torch.uint8),
        search.scores.contiguous(),
        selection.tokens,
        selection.parents,
        selection.scores,
        invalid.view(torch.int8),
        rows.stride(0),
        C,
        excluded,
        search.task.pad,
        BC=triton.next_power_of_2(C),
        **pdl,
    )
    return NextTokens(selection, search.sampler_state, invalid)


def _find_threshold(
    rows: Tensor,
    highest: Tensor,
    rule: KeepRule,
    arguments: tuple[float, ...],
    block: int,
) -> _Threshold:
    """Run the passes that find the digits of the threshold; none if the rule does not need it."""
    if rule.kind not in ("count", "mass"):
        return _Threshold(highest, highest, highest, highest)
    R, C = highest.shape
    lowest = _LOWEST_BITS[rows.dtype]
    shifts = range(28, lowest - 1, -4)
    digits = threshold_triton.DIGITS.value
    starts = highest.new_empty(len(shifts), R, dtype=torch.long)
    sums = highest.new_empty(len(shifts), R, C, digits, dtype=torch.float64)
    equals = highest.new_empty(R, C, digits, dtype=torch.int32)
    for i, shift in enumerate(shifts):
        threshold_triton.sum_above[(R, C)](
            rows,
            highest,
            starts,
            sums,
            equals,
            *arguments,
            PASS=i,
            SHIFT=shift,
            COUNT=rule.kind == "count",
            TIES=shift == lowest and rule.kind == "mass",
            BLOCK=block,
            BC=triton.next_power_of_2(C),
            num_warps=8,
            **dependent_launch(rows),
        )
    return _Threshold(starts[-1], sums[0], sums[-1], equals)


def _as_two_floats(value: float) -> tuple[float, float]:
    """Return two values of float32 whose sum is the value, since kernels take float32."""
    nearest = torch.tensor(value, dtype=torch.float32, device="cpu").item()
    return nearest, value - nearest
