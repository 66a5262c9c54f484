import math
import random

import pytest
import torch

from zoo import ZooError
from zoo_metrics.perplexity import Perplexity


def perplexity(predictions: list[list[float]], references: list[list[int]]) -> float:
    metric = Perplexity()
    metric.update(predictions, references)
    return metric.compute()["perplexity"]


def test_a_uniform_guess_among_eight_is_as_perplexed_as_it_looks():
    assert perplexity([[-math.log(8)] * 3], [[1, 2, 3]]) == pytest.approx(8, abs=1e-12)


def test_tokens_count_the_same_whatever_their_sequence_by_hand():
    value = perplexity(
        [[math.log(1 / 2), math.log(1 / 4)], [math.log(1 / 8)], []], [[1, 2], [3], []]
    )

    assert value == pytest.approx((2 * 4 * 8) ** (1 / 3), abs=1e-12)


def test_it_equals_the_exponential_of_torchs_cross_entropy():
    rng = random.Random(0)
    torch.manual_seed(0)
    predictions, references, losses = [], [], []
    for _ in range(200):
        logits = torch.randn(rng.randint(1, 9), 7, dtype=torch.float64)
        tokens = torch.randint(7, (len(logits),))
        loss = torch.nn.functional.cross_entropy(logits, tokens, reduction="none")
        own = perplexity([(-loss).tolist()], [tokens.tolist()])
        assert own == pytest.approx(loss.mean().exp().item(), rel=1e-12)
        predictions.append((-loss).tolist())
        references.append(tokens.tolist())
        losses.append(loss)

    expected = torch.cat(losses).mean().exp().item()

    assert perplexity(predictions, references) == pytest.approx(expected, rel=1e-12)
    reference = Perplexity().reference(predictions, references)
    assert reference == {"perplexity": pytest.approx(expected, rel=1e-9)}


def test_what_is_held_impossible_perplexes_without_end():
    assert perplexity([[-math.inf, -1.0]], [[1, 2]]) == math.inf
    assert perplexity([[-1e9]], [[1]]) == math.inf


def test_certainty_may_be_off_by_rounding():
    assert perplexity([[1e-7]], [[1]]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("wrong", [0.5, math.nan, math.inf])
def test_what_is_no_log_probability_is_refused(wrong):
    metric = Perplexity()
    with pytest.raises(ZooError, match=r"^perplexity takes log-probabilities, at most 0, but got"):
        metric.update([[-1.0], [-1.0, wrong]], [[1], [1, 2]])
    assert metric.total == 0


def test_lists_of_unequal_length_are_refused():
    with pytest.raises(ZooError, match=r"^perplexity: 1 log-probabilities for 2 tokens$"):
        Perplexity().update([[-1.0]], [[1, 2]])
    with pytest.raises(ZooError, match=r"^perplexity: 1 predictions, but 0 references$"):
        Perplexity().update([[-1.0]], [])


def test_no_tokens_have_no_perplexity():
    metric = Perplexity()
    metric.update([[]], [[]])
    with pytest.raises(ZooError, match=r"^perplexity of no tokens has no value$"):
        metric.compute()
