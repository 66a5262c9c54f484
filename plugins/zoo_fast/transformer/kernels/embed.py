"""The input of a decoding step in one kernel."""

import torch
import triton
from torch import Tensor

from zoo_fast.device.triton_support import dependent_launch
from zoo_fast.transformer.kernels import embed_triton


def embed(
    tokens: Tensor, at: Tensor, table: Tensor, factor: float, added: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the embedded tokens [R, D] and the next positions [R].

    Args:
        tokens: token IDs [R].
        at: positions [R].
        table: embedding matrix [V, D], multiplied by the factor.
        added: vectors [N, D] of the positions, None if there are none.
    """
    D = table.shape[1]
    output, next_at = table.new_empty(len(at), D), torch.empty_like(at)
    embed_triton.embed[(len(at),)](
        tokens.contiguous(),
        at,
        table,
        table if added is None else added,
        output,
        next_at,
        factor,
        D,
        ADDED=added is not None,
        BD=triton.next_power_of_2(D),
        **dependent_launch(table),
    )
    return output, next_at
