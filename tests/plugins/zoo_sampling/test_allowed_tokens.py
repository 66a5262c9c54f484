import torch

from zoo_sampling.allowed_tokens import AllowedTokens
from zoo_sampling.suppressed_tokens import SuppressedTokens


def test_all_other_tokens_are_masked_in_the_range():
    scores = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0))
    for length in range(5):
        history = torch.ones(2, 3, length, dtype=torch.long)
        allowed = AllowedTokens(tokens=[4, 2], start=2, stop=4)(scores, history)
        others = SuppressedTokens(tokens=[0, 1, 3, 5], start=2, stop=4)(scores, history)
        assert torch.equal(allowed, others)
