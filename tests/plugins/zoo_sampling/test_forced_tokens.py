import pytest
import torch
from transformers.generation import ForcedBOSTokenLogitsProcessor

from zoo import ZooError
from zoo_sampling.forced_tokens import ForcedTokens


def scores():
    return torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0)).log_softmax(dim=-1)


def history(length):
    return torch.ones(2, 3, length, dtype=torch.long)


def test_each_token_is_certain_at_its_position():
    part = ForcedTokens(tokens=[4, 2], start=2)
    for length, token in ((2, 4), (3, 2)):
        filtered = part(scores(), history(length))
        assert (filtered[..., token] == 0).all()
        assert filtered.isneginf().sum() == 2 * 3 * 5
    for length in (0, 1, 4):
        assert torch.equal(part(scores(), history(length)), scores())


@pytest.mark.parametrize("length", [1, 2])
def test_scores_equal_transformers(length):
    expected = ForcedBOSTokenLogitsProcessor(5)(
        history(length).flatten(0, 1), scores().flatten(0, 1)
    )
    filtered = ForcedTokens(tokens=[5])(scores(), history(length))
    assert torch.equal(filtered.flatten(0, 1), expected)


def test_invalid_values():
    with pytest.raises(ZooError, match=r"tokens is \[\]"):
        ForcedTokens(tokens=[])
    with pytest.raises(ZooError, match="start is 0"):
        ForcedTokens(tokens=[1], start=0)
    with pytest.raises(ZooError, match="tokens contains 6, out of range for a vocabulary of 6"):
        ForcedTokens(tokens=[6])(scores(), history(1))
