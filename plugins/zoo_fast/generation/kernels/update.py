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
) -> None:
    """Update tokens, scores, finished, num_generated and the last two arguments in place.

    Args:
        invalid: [], set to True if a logit of an active hypothesis was NaN or inf.
        last_tokens: the selected tokens, [B, W].
    """
    B, W, T = search.tokens.shape
    selection = selected.selection
    eos_ids = search.task.eos_ids
    update_triton.update_search[(B,)](
        search.tokens,
        search.scores,
        search.finished.view(torch.int8),
        search.num_generated,
        last_tokens,
        invalid.view(torch.int8),
        search.cur_len,
        selection.tokens.contiguous(),
        selection.parents.contiguous(),
        selection.scores.contiguous(),
        selected.nan_or_inf.contiguous().view(torch.int8),
        eos_ids if len(eos_ids) else search.cur_len,
        to_scalar(search.task.max_length, search.scores.device),
        T,
        W=W,
        E=len(eos_ids),
        BW=triton.next_power_of_2(W),
        BT=min(256, triton.next_power_of_2(T)),
        num_warps=1 if W == 1 else 4,
        **dependent_launch(search.scores),
    )
