"""Update of a search after a selection in one kernel."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
from torch import Tensor

from zoo.generation.search import NextTokens
from zoo_fast.device.triton_support import dependent_launch
from zoo_fast.generation.fixed_search import FixedSearch, to_scalar
from zoo_fast.generation.kernels import update_triton
from zoo_fast.generation.tensor_copies import Pair, divide_small

BLOCK = 1024
"""Elements of a tensor that are copied at once."""
COPIED_BYTES = 2**15
"""Bytes that one program copies; many programs copy more in less time."""


def update_in_place(
    search: FixedSearch,
    selected: NextTokens,
    *,
    invalid: Tensor,
    last_tokens: Tensor,
    table: Tensor | None,
    pairs: Sequence[Pair],
) -> list[Pair]:
    """Update tokens, scores, finished, num_generated and the next three arguments in place, and
    copy small tensors.

    Args:
        invalid: [], set to True if a logit of an active hypothesis was NaN or inf.
        last_tokens: the selected tokens, [B, W].
        table: [B * W, n], whose rows are put in the order of the parents.
        pairs: what else is to be copied after the selection.

    Returns the pairs that are still to be copied, with the length of the search. The only program
    of a single item copies small tensors itself; others would not know when all have read them.
    """
    B, W, T = search.tokens.shape
    if B == 1:
        next_len = search.cur_len
        small, others = divide_small(pairs, COPIED_BYTES)
    else:
        next_len = torch.empty_like(search.cur_len)
        small, others = [], [*pairs, (search.cur_len, next_len)]
    targets, sources = zip(*(small or [(last_tokens, last_tokens)]), strict=True)
    selection = selected.selection
    eos_ids = search.task.eos_ids
    update_triton.update_search[(B,)](
        search.tokens,
        search.scores,
        search.finished.view(torch.int8),
        search.num_generated,
        last_tokens,
        invalid.view(torch.int8),
        last_tokens if table is None else table,
        next_len,
        search.cur_len,
        selection.tokens.contiguous(),
        selection.parents.contiguous(),
        selection.scores.contiguous(),
        selected.nan_or_inf.contiguous().view(torch.int8),
        eos_ids if len(eos_ids) else search.cur_len,
        to_scalar(search.task.max_length, search.scores.device),
        targets,
        sources,
        tuple(target.numel() for target in targets),
        T,
        0 if table is None else table.shape[1],
        W=W,
        E=len(eos_ids),
        TABLE=table is not None,
        COUNT=len(small),
        BW=triton.next_power_of_2(W),
        BE=triton.next_power_of_2(max(len(eos_ids), 1)),
        BLOCK=BLOCK,
        BT=min(max(256, 2048 // W), triton.next_power_of_2(T)),
        num_warps=1 if W == 1 else 4,
        **dependent_launch(search.scores),
    )
    return others
