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
    extras = {"attention_weights": torch.tensor(looks), "source_mask": torch.tensor(source)}
    return Outputs(torch.zeros(*told.shape, 2), torch.zeros_like(told).long(), told, extras=extras)


def test_the_price_of_known_looks():
    looks = [[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]]  # in all 1.5, 0.5 and 0

    loss = DoublyStochastic(weight=2.0)(outputs(looks, [[True] * 3], [[True, True]]))

    assert loss.item() == pytest.approx((2 * math.log(2) + 2 * (0.25 + 0.25 + 1)) / 2)


def test_looks_that_add_up_to_one_cost_nothing():
    looks = [[[0.25, 0.75], [0.75, 0.25]]]

    loss = DoublyStochastic()(outputs(looks, [[True, True]], [[True, True]]))

    assert loss.item() == pytest.approx(math.log(2))


def test_what_is_not_real_costs_nothing():
    looks = [[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[0.3, 0.7, 0.0], [0.5, 0.5, 0.0]]]
    source, mask = [[True, True, False], [True, True, True]], [[True, False], [False, False]]

    loss = DoublyStochastic()(outputs(looks, source, mask))

    # One step of the first item counts, and two of its places: 0.5 each.
    assert loss.item() == pytest.approx(math.log(2) + 0.25 + 0.25)


def test_without_weight_it_is_the_cross_entropy():
    (example,) = DoublyStochastic().examples()

    torch.testing.assert_close(DoublyStochastic(weight=0.0)(example), CrossEntropy()(example))


def test_the_price_pulls_at_the_looks_alone():
    model = zoo.compose("show-attend-tell-soft-tiny")
    made = model(model.example(2, 4, torch.Generator().manual_seed(0)))
    penalty = DoublyStochastic(weight=1.0)(made) - DoublyStochastic(weight=0.0)(made)

    penalty.backward()

    pulled = {name for name, weight in model.named_parameters() if weight.grad.abs().sum() > 1e-9}
    assert "decoder.attention.scorers.0.v" in pulled
    assert not {name for name in pulled if name.startswith("decoder.L_")}


def test_looks_are_handed_over_step_by_step():
    model = zoo.compose("show-attend-tell-soft-tiny").eval()
    batch = model.example(2, 4, torch.Generator().manual_seed(0))

    with zoo.recording(model) as log:
        made = model(batch)

    assert made.extras["attention_weights"].shape == (2, 5, 4)
    assert made.extras["source_mask"].shape == (2, 4)
    recorded = torch.cat(log["decoder.attention"], dim=2)[:, 0]
    torch.testing.assert_close(made.extras["attention_weights"], recorded, rtol=0, atol=0)
    torch.testing.assert_close(made.extras["attention_weights"].sum(dim=-1), torch.ones(2, 5))


def test_a_model_that_hands_nothing_over_is_named():
    model = zoo.compose("show-attend-tell-soft-tiny", overrides=["model.return_attention=false"])
    made = model(model.example(2, 4, torch.Generator().manual_seed(0)))
    with pytest.raises(ZooError, match="objective 'doubly-stochastic' needs 'attention_weights' of the model"):
        DoublyStochastic()(made)


def test_a_negative_weight_is_refused():
    with pytest.raises(SpecError, match="weight"):
        zoo.check("show-attend-tell-soft-tiny", overrides=["objective.weight=-1"])
