"""Parameters of several layers as one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def concatenate(parameters: Sequence[Tensor]) -> Tensor:
    """Return the parameters joined along dimension 0; a single one is not copied."""
    return parameters[0] if len(parameters) == 1 else torch.cat(list(parameters))
