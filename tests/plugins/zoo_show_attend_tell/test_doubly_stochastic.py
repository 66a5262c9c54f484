import math

import pytest
import torch

import zoo
from zoo import Outputs, SpecError, ZooError
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_show_attend_tell.doubly_stochastic import DoublyStochastic


def outputs(looks: list, source: list, mask: list) -> Outputs:
    """Logits that say nothing: each target surprises by log 2."""
    told = torch.tensor(mask)
    extras = {"looks": torch.tensor(looks), "source_mask": torch.tensor(source)}
    return Outputs(torch.zeros(*told.shape, 2), torch.zeros_like(told).long(), told, extras=extras)


def test_penalty_has_known_values():
    looks = [[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]]  # in all 1.5, 0.5 and 0

    loss = DoublyStochastic(weight=2.0)(outputs(looks, [[True] * 3], [[True, True]]))

    assert loss.item() == pytest.approx((2 * math.log(2) + 2 * (0.25 + 0.25 + 1)) / 2)


def test_weights_that_sum_to_one_have_no_penalty():
    looks = [[[0.25, 0.75], [0.75, 0.25]]]

    loss = DoublyStochastic()(outputs(looks, [[True, True]], [[True, True]]))

    assert loss.item() == pytest.approx(math.log(2))


def test_masked_regions_and_targets_have_no_penalty():
    looks = [[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[0.3, 0.7, 0.0], [0.5, 0.5, 0.0]]]
    source, mask = [[True, True, False], [True, True, True]], [[True, False], [False, False]]

    loss = DoublyStochastic()(outputs(looks, source, mask))

    # One step of the first item counts, and two of its places: 0.5 each.
    assert loss.item() == pytest.approx(math.log(2) + 0.25 + 0.25)


def test_weight_zero_is_the_cross_entropy():
    (example,) = DoublyStochastic().examples()

    torch.testing.assert_close(DoublyStochastic(weight=0.0)(example), CrossEntropy()(example))


def test_penalty_has_gradients_for_attention_only():
    model = zoo.compose("show-attend-tell-soft-tiny")
    made = model(model.example(2, 4, torch.Generator().manual_seed(0)))
    penalty = DoublyStochastic(weight=1.0)(made) - DoublyStochastic(weight=0.0)(made)

    penalty.backward()

    pulled = {name for name, weight in model.named_parameters() if weight.grad.abs().sum() > 1e-9}
    assert "decoder.attention.scorers.0.v" in pulled
    assert not {name for name in pulled if name.startswith("decoder.L_")}


def test_outputs_have_the_weights_of_each_step():
    model = zoo.compose("show-attend-tell-soft-tiny").eval()
    batch = model.example(2, 4, torch.Generator().manual_seed(0))

    with zoo.recording(model) as log:
        made = model(batch)

    assert made.extras["looks"].shape == (2, 5, 4)
    assert made.extras["source_mask"].shape == (2, 4)
    recorded = torch.cat(log["decoder.attention"], dim=2)[:, 0]
    torch.testing.assert_close(made.extras["looks"], recorded, rtol=0, atol=0)
    torch.testing.assert_close(made.extras["looks"].sum(dim=-1), torch.ones(2, 5))


def test_missing_attention_weights_raise():
    model = zoo.compose("show-attend-tell-soft-tiny", overrides=["model.looks=false"])
    made = model(model.example(2, 4, torch.Generator().manual_seed(0)))
    with pytest.raises(ZooError, match=r"'doubly-stochastic'.*'looks'"):
        DoublyStochastic()(made)


def test_a_negative_weight_raises():
    with pytest.raises(SpecError, match="weight"):
        zoo.check("show-attend-tell-soft-tiny", overrides=["objective.weight=-1"])
