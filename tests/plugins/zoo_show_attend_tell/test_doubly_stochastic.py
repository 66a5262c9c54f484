import math

import pytest
import torch

import zoo
from zoo import Outputs, SpecError, ZooError
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_show_attend_tell.doubly_stochastic import DoublyStochastic


def outputs(weights: list, source: list, mask: list) -> Outputs:
    """Return outputs with zero logits of two classes, so that each loss is log 2."""
    target_mask = torch.tensor(mask)
    extras = {"attention_weights": torch.tensor(weights), "source_mask": torch.tensor(source)}
    return Outputs(
        torch.zeros(*target_mask.shape, 2),
        torch.zeros_like(target_mask).long(),
        target_mask,
        extras=extras,
    )


def test_penalty_has_known_values():
    weights = [[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]]  # sums 1.5, 0.5 and 0

    loss = DoublyStochastic(weight=2.0)(outputs(weights, [[True] * 3], [[True, True]]))

    assert loss.item() == pytest.approx((2 * math.log(2) + 2 * (0.25 + 0.25 + 1)) / 2)


def test_weights_that_sum_to_one_have_no_penalty():
    weights = [[[0.25, 0.75], [0.75, 0.25]]]

    loss = DoublyStochastic()(outputs(weights, [[True, True]], [[True, True]]))

    assert loss.item() == pytest.approx(math.log(2))


def test_masked_regions_and_targets_have_no_penalty():
    weights = [[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[0.3, 0.7, 0.0], [0.5, 0.5, 0.0]]]
    source, mask = [[True, True, False], [True, True, True]], [[True, False], [False, False]]

    loss = DoublyStochastic()(outputs(weights, source, mask))

    # The loss has one step and two regions of the first item, with weight 0.5 each.
    assert loss.item() == pytest.approx(math.log(2) + 0.25 + 0.25)


def test_weight_zero_is_the_cross_entropy():
    (example,) = DoublyStochastic().examples()

    torch.testing.assert_close(DoublyStochastic(weight=0.0)(example), CrossEntropy()(example))


def test_penalty_has_gradients_for_attention_only():
    model = zoo.compose("show-attend-tell-soft-tiny")
    result = model(model.example(2, 4, torch.Generator().manual_seed(0)))
    penalty = DoublyStochastic(weight=1.0)(result) - DoublyStochastic(weight=0.0)(result)

    penalty.backward()

    with_gradient = {name for name, p in model.named_parameters() if p.grad.abs().sum() > 1e-9}
    assert "decoder.attention.scorers.0.v" in with_gradient
    assert not {name for name in with_gradient if name.startswith("decoder.L_")}


def test_outputs_have_the_weights_of_each_step():
    model = zoo.compose("show-attend-tell-soft-tiny").eval()
    batch = model.example(2, 4, torch.Generator().manual_seed(0))

    with zoo.recording(model) as log:
        result = model(batch)

    assert result.extras["attention_weights"].shape == (2, 5, 4)
    assert result.extras["source_mask"].shape == (2, 4)
    recorded = torch.cat(log["decoder.attention"], dim=2)[:, 0]
    torch.testing.assert_close(result.extras["attention_weights"], recorded, rtol=0, atol=0)
    torch.testing.assert_close(result.extras["attention_weights"].sum(dim=-1), torch.ones(2, 5))


def test_missing_attention_weights_raise():
    changes = ["model.return_attention=false"]
    with pytest.raises(SpecError, match=r"'doubly-stochastic' needs 'attention_weights' and"):
        zoo.check("show-attend-tell-soft-tiny", overrides=changes)
    model = zoo.compose("show-attend-tell-soft-tiny", overrides=[*changes, "objective=reinforce"])
    result = model(model.example(2, 4, torch.Generator().manual_seed(0)))
    with pytest.raises(ZooError, match=r"'doubly-stochastic'.*'attention_weights'"):
        DoublyStochastic()(result)


def test_a_negative_weight_raises():
    with pytest.raises(SpecError, match="weight"):
        zoo.check("show-attend-tell-soft-tiny", overrides=["objective.weight=-1"])
