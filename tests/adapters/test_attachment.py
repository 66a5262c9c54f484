"""Adapters are attached by hooks: the names of the model stay, and its parameters are frozen."""

import pytest
import torch
from torch import nn

import zoo
from zoo.adapters import attach, detach, find_adapters, reset_adapters
from zoo_adapters.lora import Lora
from zoo_adapters.module_copy import ModuleCopy

LORA = {"type": "lora", "rank": 2, "targets": ["*.{query,value}"]}


def _adapted():
    return zoo.compose({"extends": "bert-tiny", "name": "adapted", "adapters": {"a": LORA}})


def test_the_names_of_the_model_stay_and_its_parameters_are_frozen():
    plain, adapted = zoo.compose("bert-tiny"), _adapted()
    own = {name for name, _ in adapted.named_parameters() if name.startswith("adapters.")}
    assert {name for name, _ in plain.named_parameters()} | own == set(
        dict(adapted.named_parameters())
    )
    assert {name for name, p in adapted.named_parameters() if p.requires_grad} == own
    assert "adapters.a.layers.encoder.blocks.0.attention.query.A" in own
    for name, tensor in plain.state_dict().items():
        assert torch.equal(adapted.state_dict()[name], tensor), name


def test_a_pattern_without_a_match_is_an_error_with_its_place(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "extends: bert-tiny\nname: mine\nadapters:\n"
        "  style:\n    type: lora\n    targets:\n      - '*.query'\n      - '*.qeury'\n"
    )
    with pytest.raises(zoo.SpecError) as caught:
        zoo.check(spec)
    (problem,) = caught.value.problems
    assert (problem.place.line, problem.path) == (8, "adapters.style.targets[1]")
    assert "'*.qeury' matches no module that 'lora' can adapt" in problem.message


def test_a_pattern_without_a_match_is_reported_once_by_a_training(tmp_path):
    zoo.save(zoo.compose("bert-tiny"), tmp_path / "base.safetensors")
    spec = {
        "extends": str(tmp_path / "base.safetensors"),
        "name": "mine",
        "adapters": {"a": {"type": "lora", "targets": ["nothing"]}},
        "train": {
            "data": {"type": "arrays", "file": "a.npz", "fields": {}},
            "optimiser": {"type": "adam", "lr": 0.1},
            "steps": 1,
        },
    }
    with pytest.raises(zoo.SpecError) as caught:
        zoo.train(spec, output=tmp_path / "run")
    found = [problem for problem in caught.value.problems if "nothing" in problem.message]
    assert len(found) == 1


def test_two_copies_of_a_module_are_refused_with_the_line_of_the_second(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "extends: bert-tiny\nname: mine\nadapters:\n"
        "  first: {type: module-copy, targets: ['*.query']}\n"
        "  second:\n    type: module-copy\n    targets: [encoder.blocks.1]\n"
    )
    with pytest.raises(zoo.SpecError) as caught:
        zoo.check(spec)
    (problem,) = caught.value.problems
    assert (problem.place.line, problem.path) == (7, "adapters.second.targets")
    expected = "output of encoder.blocks.1.attention.query is already replaced by adapter 'first'"
    assert expected in problem.message


def test_all_problems_of_adapters_are_reported_together():
    adapters = {name: {"type": "lora", "targets": [f"nothing.{name}"]} for name in ("a", "b")}
    with pytest.raises(zoo.SpecError) as caught:
        zoo.check({"extends": "bert-tiny", "name": "mine", "adapters": adapters})
    assert [p.path for p in caught.value.problems] == [
        "adapters.a.targets[0]",
        "adapters.b.targets[0]",
    ]


def test_the_report_has_the_adapters():
    report = zoo.check({"extends": "bert-tiny", "name": "mine", "adapters": {"a": LORA}})
    (part,) = [part for part in report.tree.walk() if part.kind == "adapter"]
    assert (part.path, part.type, part.plugin) == ("adapters.a", "lora", "adapters")
    assert part.parameters == sum(p.numel() for p in find_adapters(_adapted())["a"].parameters())


def test_a_spec_without_adapters_resolves_as_before():
    assert "adapters" not in zoo.load_spec("bert-tiny").resolve()


@pytest.mark.parametrize("name", ["a", "no name"])
def test_names_are_identifiers_and_different(name):
    with pytest.raises(zoo.ZooError, match=f"the name '{name}' of an adapter"):
        attach(_adapted(), name, Lora(targets=["*.query"]))


def test_subclasses_that_use_their_weight_in_another_way_are_not_adapted():
    class Halved(nn.Linear):
        def forward(self, input):
            return nn.functional.linear(input, self.weight / 2)

    model = nn.Module()
    model.layer = Halved(3, 2)
    with pytest.raises(zoo.ZooError, match="no module that 'lora' can adapt"):
        attach(model, "a", Lora(targets=["layer"]))


def test_initial_values_depend_on_the_seed_and_not_on_the_model():
    model = _adapted()
    first = {n: t.clone() for n, t in model.adapters.state_dict().items()}
    reset_adapters(model, 0)
    assert all(torch.equal(t, first[n]) for n, t in model.adapters.state_dict().items())
    reset_adapters(model, 1)
    assert not all(torch.equal(t, first[n]) for n, t in model.adapters.state_dict().items())


def test_detached_adapters_leave_no_hooks():
    model = _adapted()
    detach(model)
    assert not find_adapters(model)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_copied_module_has_no_hooks():
    model = _adapted()
    query = model.encoder.blocks[0].attention.query
    calls = []
    query.register_forward_hook(lambda *_: calls.append(1))
    attach(model, "b", ModuleCopy(targets=["encoder.blocks.0.attention.query"]))
    layer = model.adapters.b.layers.get_submodule("encoder.blocks.0.attention.query")
    assert not layer.module._forward_hooks
    query(torch.ones(query.in_features))
    assert calls == [1]


@torch.no_grad()
def test_adapters_of_a_module_adapt_its_copy_in_any_order():
    outputs = []
    for kinds in ((Lora, ModuleCopy), (ModuleCopy, Lora)):
        model = nn.Module()
        model.layer = nn.Linear(2, 2)
        for kind in kinds:
            attach(model, kind.__name__, kind(targets=["layer"]))
        model.adapters.ModuleCopy.layers.layer.module.weight.copy_(torch.eye(2))
        model.adapters.ModuleCopy.layers.layer.module.bias.fill_(1.0)
        low_rank = model.adapters.Lora.layers.layer
        low_rank.A.fill_(0.25)
        low_rank.B.fill_(0.5)
        outputs.append(model.layer(torch.tensor([1.0, 2.0])))
    # [1, 2] + 1, and s B A x = 2 * 0.5 * 8 * 0.25 * (1 + 2)
    assert outputs[0].tolist() == outputs[1].tolist() == [8.0, 9.0]
