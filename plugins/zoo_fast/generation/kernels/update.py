"""Update of a search after a selection in one kernel."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from zoo.generation.search import NextTokens
from zoo_fast.device.triton_support import dependent_launch
from zoo_fast.generation.fixed_search import FixedSearch, to_scalar
from zoo_fast.generation.kernels import update_triton


def update_in_place(
    search: FixedSearch,
    selected: NextTokens,
    *,
    invalid: Tensor,
    last_tokens: Tensor,
    table: Tensor | None,
) -> Tensor:
    """Update tokens, scores, finished, num_generated and the last three arguments in place.

    Args:
        invalid: [], set to True if a logit of an active hypothesis was NaN or inf.
        last_tokens: the selected tokens, [B, W].
        table: [B * W, n], whose rows are put in the order of the parents.

    Returns the next length [].
    """
    B, W, T = search.tokens.shape
    next_len = torch.empty_like(search.cur_len)
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
        T,
        0 if table is None else table.shape[1],
        W=W,
        E=len(eos_ids),
        TABLE=table is not None,
        BW=triton.next_power_of_2(W),
        BE=triton.next_power_of_2(max(len(eos_ids), 1)),
        BT=min(max(256, 2048 // W), triton.next_power_of_2(T)),
        num_warps=1 if W == 1 else 4,
        **dependent_launch(search.scores),
    )
    return next_len
