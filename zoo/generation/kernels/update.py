"""Update of a search after a selection in one kernel."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from zoo.device.triton_support import dependent_launch
from zoo.generation.kernels import update_triton
from zoo.interfaces import SearchState, Selection


def update_in_place(
    search: SearchState,
    selection: Selection,
    nan_or_inf: Tensor,
    *,
    invalid: Tensor,
    last_tokens: Tensor,
) -> None:
    """Update tokens, scores, finished, num_generated and the last two arguments in place.

    Args:
        nan_or_inf: where the selection was made from logits with NaN or inf, [B, W].
        invalid: [], set to True if it was for an active hypothesis.
        last_tokens: the selected tokens, [B, W].
    """
    B, W, T = search.tokens.shape
    assert isinstance(search.cur_len, Tensor)
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
        nan_or_inf.contiguous().view(torch.int8),
        eos_ids if len(eos_ids) else search.cur_len,
        T,
        search.task.max_length,
        W=W,
        E=len(eos_ids),
        BW=triton.next_power_of_2(W),
        BT=min(256, triton.next_power_of_2(T)),
        num_warps=1 if W == 1 else 4,
        **dependent_launch(search.scores),
    )
