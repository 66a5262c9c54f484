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


def test_a_uniform_distribution_over_eight_tokens():
    assert perplexity([[-math.log(8)] * 3], [[1, 2, 3]]) == pytest.approx(8, abs=1e-12)


def test_known_value():
    value = perplexity(
        [[math.log(1 / 2), math.log(1 / 4)], [math.log(1 / 8)], []], [[1, 2], [3], []]
    )

    assert value == pytest.approx((2 * 4 * 8) ** (1 / 3), abs=1e-12)


def test_matches_the_exponential_of_torch_cross_entropy():
    rng = random.Random(0)
    torch.manual_seed(0)
    predictions, references, losses = [], [], []
    for _ in range(200):
        logits = torch.randn(rng.randint(1, 9), 7, dtype=torch.float64)
        tokens = torch.randint(7, (len(logits),))
        loss = torch.nn.functional.cross_entropy(logits, tokens, reduction="none")
        value = perplexity([(-loss).tolist()], [tokens.tolist()])
        assert value == pytest.approx(loss.mean().exp().item(), rel=1e-12)
        predictions.append((-loss).tolist())
        references.append(tokens.tolist())
        losses.append(loss)

    expected = torch.cat(losses).mean().exp().item()

    assert perplexity(predictions, references) == pytest.approx(expected, rel=1e-12)
    reference = Perplexity().reference(predictions, references)
    assert reference == {"perplexity": pytest.approx(expected, rel=1e-9)}


def test_a_token_of_probability_zero_gives_infinity():
    assert perplexity([[-math.inf, -1.0]], [[1, 2]]) == math.inf
    assert perplexity([[-1e9]], [[1]]) == math.inf


def test_rounding_errors_above_zero_are_accepted():
    assert perplexity([[1e-7]], [[1]]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("invalid", [0.5, math.nan, math.inf])
def test_values_above_zero_and_nan_raise(invalid):
    metric = Perplexity()
    with pytest.raises(ZooError, match=rf"perplexity.*{invalid}"):
        metric.update([[-1.0], [-1.0, invalid]], [[1], [1, 2]])
    assert metric.total == 0


def test_unequal_lengths_raise():
    with pytest.raises(ZooError, match=r"perplexity.*1 log-prob.*2 tokens"):
        Perplexity().update([[-1.0]], [[1, 2]])
    with pytest.raises(ZooError, match=r"perplexity.*1 predictions.*0 references"):
        Perplexity().update([[-1.0]], [])


def test_no_tokens_raise():
    metric = Perplexity()
    metric.update([[]], [[]])
    with pytest.raises(ZooError, match=r"perplexity.*no tokens"):
        metric.compute()
