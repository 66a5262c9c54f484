"""The forced end."""

import math

import pytest
import torch

from zoo import ZooError
from zoo_sampling.forced_end import ForcedEnd


def test_only_the_end_token_is_left():
    logits = torch.tensor([[[1.0, -2.0, 3.0]]])
    filtered = ForcedEnd(token=1)(logits, torch.zeros(1, 1, 2, dtype=torch.long))
    assert filtered.tolist() == [[[-math.inf, 0.0, -math.inf]]]


def test_invalid_tokens_are_rejected():
    with pytest.raises(ZooError, match="token is -1"):
        ForcedEnd(token=-1)
