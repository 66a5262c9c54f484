"""Every order and overlap of two adapters: checked, trained, saved, loaded, resumed and merged."""

import itertools

import pytest
import torch
from training_kit import assert_equal_weights, make_spec, write_files

import zoo
from zoo.adapters import find_adapters
from zoo.registry.component_registry import default_registry

KINDS = [entry.cls for entry in default_registry().components("adapter")]
BLOCK = "decoder.blocks.0"
MODULES = [f"{BLOCK}.attention.query", f"{BLOCK}.attention", f"{BLOCK}.feed_forward.up"]
"""The first that a kind supports is its single module; the pattern of the block has all others."""
OVERLAPS = ["same", "outer", "inner", "block"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("texts"))


def _adapter(kind, *, whole):
    model = zoo.compose("transformer-tiny")
    adapter = kind(targets=[BLOCK])
    single = next(path for path in MODULES if adapter.supports(model.get_submodule(path)))
    return {"type": kind.name, "targets": [BLOCK if whole else single]}


def _spec(files, first, second, overlap, **train):
    adapters = {
        "first": _adapter(first, whole=overlap in ("outer", "block")),
        "second": _adapter(second, whole=overlap in ("inner", "block")),
    }
    spec = make_spec(files, steps=2, log={"every": 1}, **train)
    del spec["train"]["validation"]
    return {**spec, "adapters": adapters}


def _logits(model):
    return model.eval()(model.example(2, 5, torch.Generator().manual_seed(0))).logits


def _check_pair(files, first, second, overlap, tmp_path):
    """Return what becomes of a pair: refused by the check, or trained."""
    spec = _spec(files, first, second, overlap)
    try:
        zoo.check(spec)
    except zoo.SpecError as error:
        (problem,) = error.problems
        assert problem.path == "adapters.second.targets"
        assert "already replaced by adapter 'first'" in problem.message
        return "refused"
    whole, resumed = (tmp_path / name / "model.safetensors" for name in ("whole", "resumed"))
    zoo.train(spec, output=whole.parent, device="cpu")
    zoo.train(spec, output=resumed.parent, device="cpu", overrides=["train.steps=1"])
    zoo.train(spec, output=resumed.parent, device="cpu", resume=True)
    assert_equal_weights(whole, resumed)
    return _check_trained(zoo.compose(spec), zoo.load(whole))


@torch.no_grad()
def _check_trained(untrained, model):
    plain = zoo.compose({key: v for key, v in untrained.spec.items() if key != "adapters"})
    expected = _logits(plain)
    torch.testing.assert_close(_logits(untrained), expected)
    applied = _logits(model)
    for name, adapter in find_adapters(model).items():
        before = dict(find_adapters(untrained)[name].named_parameters())
        same = [n for n, p in adapter.named_parameters() if torch.equal(p, before[n])]
        assert len(same) < len(before), f"adapter '{name}' is not trained"
    with zoo.without_adapters(model):
        torch.testing.assert_close(_logits(model), expected)
    for name in find_adapters(model):
        zoo.use_adapters(model, name)
        assert not torch.allclose(_logits(model), expected), f"adapter '{name}' is not applied"
    zoo.use_adapters(model, "first", "second")
    try:
        merged = _logits(zoo.merge_adapters(model))
    except zoo.ZooError:
        return "trained"
    torch.testing.assert_close(merged, applied)
    return "merged"


def _product(*names):
    return [
        pytest.param(first, second, overlap, id=f"{first.name}-{second.name}-{overlap}")
        for first, second, overlap in itertools.product(KINDS, KINDS, OVERLAPS)
        if not names or (first.name, second.name, overlap) in names
    ]


SAMPLE = {
    ("lora", "module-copy", "inner"): "merged",
    ("module-copy", "dora", "same"): "trained",
    ("prefix", "module-copy", "block"): "trained",
    ("module-copy", "module-copy", "inner"): "refused",
}


@pytest.mark.parametrize(("first", "second", "overlap"), _product(*SAMPLE))
def test_pairs_of_a_sample(first, second, overlap, files, tmp_path):
    found = _check_pair(files, first, second, overlap, tmp_path)
    assert found == SAMPLE[first.name, second.name, overlap]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "overlap"), _product())
def test_all_pairs(first, second, overlap, files, tmp_path):
    copies = {first.name, second.name} == {"module-copy"}
    found = _check_pair(files, first, second, overlap, tmp_path)
    assert (found == "refused") == copies
