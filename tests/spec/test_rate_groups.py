"""Learning rates and weight decays of parameters."""

import pytest
import torch
from torch import nn

import zoo
from zoo.plugin import Optimiser
from zoo.registry.component_registry import default_registry
from zoo.spec.rate_groups import depth_factors

OPTIMISERS = [entry.name for entry in default_registry().components("optimiser")]


def _spec(model="bert-tiny", **train):
    data = {"type": "csv", "file": "x.csv", "fields": {"source": {"column": "text"}}}
    return {
        "extends": model,
        "zoo": 1,
        "name": "mine",
        "preprocessing": {"source": "masked-text"},
        "train": {"data": data, "optimiser": "adamw", "steps": 5, **train},
    }


def _rates(optimiser, key="lr"):
    return {name: group[key] for group in optimiser.param_groups for name in group["param_names"]}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_groups_have_their_own_rate_and_decay_with_every_optimiser(name):
    groups = [
        {"match": ["encoder.blocks.0"], "lr_factor": 0.5, "weight_decay": 0.25},
        {"match": ["encoder"], "lr_factor": 0.125},
    ]
    model = zoo.compose("bert-tiny")
    zoo.freeze(model, ["source.segments"])
    spec = _spec(optimiser={"type": name, "lr": 0.5, "weight_decay": 0.0}, groups=groups)
    optimiser = zoo.optimiser(spec, model)
    rates, decays = _rates(optimiser), _rates(optimiser, "weight_decay")
    trained = {key for key, weight in model.named_parameters() if weight.requires_grad}
    assert rates.keys() == trained
    assert optimiser.param_groups[0]["lr"] == 0.5
    assert rates["source.table.weight"] == rates["bias"] == 0.5
    assert rates["encoder.blocks.0.feed_forward.up.weight"] == 0.25
    assert rates["encoder.blocks.1.feed_forward.up.weight"] == 0.0625
    assert decays["encoder.blocks.0.feed_forward.up.weight"] == 0.25
    assert decays["encoder.blocks.0.feed_forward.up.bias"] == 0.0
    assert set(decays.values()) == {0.0, 0.25}
    loss = sum(weight.square().sum() for weight in model.parameters())
    loss.backward()
    before = {key: weight.detach().clone() for key, weight in model.named_parameters()}
    optimiser.step()
    for key, weight in model.named_parameters():
        changes = key in trained and before[key].any()
        assert torch.equal(weight, before[key]) != bool(changes) or key.endswith("bias")


def test_a_step_of_sgd_has_the_rates_of_the_groups():
    model = zoo.compose("gpt2-tiny")
    spec = _spec(
        "gpt2-tiny",
        data={"type": "plain-text", "files": "x.txt"},
        batch={"items": 2, "block": 4},
        optimiser={"type": "sgd", "lr": 0.1},
        groups=[{"match": ["decoder.blocks.{0..0}"], "lr_factor": 0.5}],
        depth_decay=0.5,
    )
    del spec["preprocessing"]
    optimiser = zoo.optimiser(spec, model)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    before = {key: weight.detach().clone() for key, weight in model.named_parameters()}
    optimiser.step()
    expected = {
        "embedding.table.weight": 0.1 / 8,
        "decoder.blocks.0.attention.query.weight": 0.1 / 4 / 2,
        "decoder.blocks.1.attention.query.weight": 0.1 / 2,
        "decoder.final_norm.weight": 0.1,
    }
    after = dict(model.named_parameters())
    for key, rate in expected.items():
        torch.testing.assert_close(before[key] - after[key], torch.full_like(after[key], rate))


def test_the_rate_decays_from_the_output_to_the_embeddings():
    factors = depth_factors(zoo.compose("bert-tiny"), 0.5)
    assert factors["source.table.weight"] == factors["encoder.position.table.weight"] == 0.125
    assert factors["encoder.blocks.0.attention_norm.bias"] == 0.25
    assert factors["encoder.blocks.1.attention_norm.bias"] == 0.5
    assert not {"bias", "transform.weight", "norm.weight"} & factors.keys()


def test_a_model_without_blocks_has_no_depth(tmp_path):
    with pytest.raises(zoo.ZooError, match="no list of blocks"):
        depth_factors(nn.Linear(2, 2), 0.5)


def test_an_optimiser_without_weight_decay_is_rejected():
    class Plain(Optimiser):
        name = "plain"

        def __init__(self, *, lr: float = 0.1) -> None:
            self.lr = lr

        def build(self, weights):
            return torch.optim.SGD([weight.tensor for weight in weights], lr=self.lr)

    registry = default_registry().with_components([Plain], plugin="mine")
    groups = [{"match": ["encoder"], "weight_decay": 0.1}]
    spec = zoo.load_spec(_spec(optimiser="plain", groups=groups), registry=registry)
    with pytest.raises(zoo.ZooError, match="optimiser 'plain' has no weight_decay"):
        zoo.optimiser(spec, zoo.compose("bert-tiny"))
    factors = [{"match": ["encoder"], "lr_factor": 0.5}]
    spec = zoo.load_spec(_spec(optimiser="plain", groups=factors), registry=registry)
    built = zoo.optimiser(spec, zoo.compose("bert-tiny"))
    assert [group["lr"] for group in built.param_groups] == [0.1, 0.05]
