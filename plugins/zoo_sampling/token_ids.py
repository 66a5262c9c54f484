"""Token IDs that are parameters of filters."""

from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError

TokenIds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]


def validate_tokens(tokens: Sequence[int]) -> tuple[int, ...]:
    """Return the token IDs, or raise ZooError if there is none or one is negative."""
    if not tokens or min(tokens) < 0:
        raise ZooError(f"tokens is {list(tokens)}; expected at least one token ID, each at least 0")
    return tuple(tokens)


def token_mask(tokens: Sequence[int], logprobs: Tensor) -> Tensor:
    """Return a mask [V] that is True at the token IDs; raise ZooError if one is out of range."""
    V = logprobs.shape[-1]
    if max(tokens) >= V:
        raise ZooError(
            f"tokens contains {max(tokens)}, out of range for a vocabulary of {V:,} tokens"
        )
    mask = torch.zeros(V, dtype=torch.bool)
    mask[list(tokens)] = True
    return mask.to(logprobs.device)
