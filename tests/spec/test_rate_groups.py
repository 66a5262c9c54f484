"""Learning rates and weight decays of parameters."""

import pytest
import torch
from torch import nn

import zoo
from zoo.attention import ScorerBank
from zoo.interfaces import Embedding, Position
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.plugin import Optimiser
from zoo.registry.component_registry import default_registry
from zoo.spec.composition import build_on_meta
from zoo.spec.rate_groups import depth_factors

REGISTRY = default_registry()
OPTIMISERS = [entry.name for entry in REGISTRY.components("optimiser")]


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


FAST = (
    *("minilm-tiny", "sentence-small", "bahdanau-small", "graph-small", "memory-network-tiny"),
    *("electra", "bart", "bloom", "clip", "siglip", "mpnet", "wav2vec2"),
)
SPECS = [name for name in REGISTRY.specs if name.endswith(("-tiny", "-small"))]
IMPORTERS = {importer.name: importer for importer in REGISTRY.importers}


ARCHITECTURES = [
    name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
    for name in sorted({*SPECS, *IMPORTERS})
]


def _build(name):
    """Return the model of a shipped spec or of an importer on the meta device."""
    if name in SPECS:
        return build_on_meta(zoo.load_spec(name)).part
    importer = IMPORTERS[name]
    return build_on_meta(zoo.load_spec(importer.spec(importer.test_config), importer=importer)).part


def _is_below(path, parent):
    return not parent or f"{path}.".startswith(f"{parent}.")


def _find_lists(model):
    """Return the lengths of the outermost lists of blocks, by path."""
    skipped = (Embedding, Position, ScorerBank, nn.ModuleList)
    outer = [path for path, module in model.named_modules() if isinstance(module, skipped)]
    return {
        path: len(module)
        for path, module in model.named_modules()
        if type(module) is nn.ModuleList and path != "projections"
        if not any(_is_below(path, other) and path != other for other in outer)
    }


def _find_depths(model, lists):
    """Return the length of the longest list beside each module that the model calls, None if it is
    called after the first block; without blocks, and positions and scorers, which blocks call."""
    order, found = {}, {}

    def record(path):
        order.setdefault(path, len(order))

    for path, module in model.named_modules():
        module.register_forward_pre_hook(lambda module, inputs, path=path: record(path))
    with torch.no_grad(), torch.device("meta"), evaluation_mode(model):
        model(model.example(2, 4))
    called_by_blocks = [
        path for path, module in model.named_modules() if isinstance(module, (Position, ScorerBank))
    ]
    for path in order:
        if any(_is_below(path, each) for each in (*lists, *called_by_blocks)):
            continue
        if any(_is_below(each, path) for each in lists):
            continue
        parent, beside = path, []
        while not beside:
            parent = parent.rpartition(".")[0]
            beside = [each for each in lists if _is_below(each, parent)]
        calls = [at for name, at in order.items() if any(_is_below(name, each) for each in beside)]
        is_first = order[path] < min(calls)
        found[path] = max(lists[each] for each in beside) if is_first else None
    return found


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_rate_increases_in_the_order_of_the_forward_pass(name):
    model = _build(name)
    lists = _find_lists(model)
    if not lists:
        pytest.skip("the model has no blocks")
    factors = depth_factors(model, 0.5)
    weights = dict(model.named_parameters())
    assert factors.keys() <= weights.keys()
    for path, length in lists.items():
        for weight in weights:
            if _is_below(weight, path):
                index = int(weight.removeprefix(f"{path}.").partition(".")[0])
                assert factors[weight] == 0.5 ** (length - index)
    for path, length in _find_depths(model, lists).items():
        expected = 1.0 if length is None else 0.5 ** (length + 1)
        for weight in weights:
            if weight.rpartition(".")[0] == path:
                assert factors.get(weight, 1.0) == expected, weight


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
