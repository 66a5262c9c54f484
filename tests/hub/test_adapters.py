"""Adapters of files: added to a loaded model, and saved one by one."""

import pytest
import torch
from hub_server import TOKEN

import zoo
from zoo.artifact import read_header

LORA = {"type": "lora", "rank": 2, "targets": ["*.{query,value}"]}
IA3 = {"type": "ia3", "targets": ["*.key"]}


@pytest.fixture
def base(tmp_path):
    zoo.save(zoo.compose("gpt2-tiny"), tmp_path / "base.safetensors")
    return tmp_path / "base.safetensors"


def _save(base, name, data, seed=0):
    model = zoo.load(base)
    zoo.adapt(model, data, name=name, seed=seed)
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter += 0.1
    return zoo.save_adapter(model, base.parent / f"{name}.safetensors"), model


def _logits(model):
    return model(model.example(2, 5, torch.Generator().manual_seed(0))).logits


def test_several_files_on_one_model_are_switched(base):
    files = {name: _save(base, name, data) for name, data in (("a", LORA), ("b", IA3))}
    model = zoo.load(base)
    for name, (file, _) in files.items():
        assert zoo.adapt(model, file, name=f"my_{name}") is model
    for name, (_, trained) in files.items():
        zoo.use_adapters(model, f"my_{name}")
        assert torch.equal(_logits(model), _logits(trained))


def test_only_the_adapter_that_was_added_last_is_trained(base):
    (file, _), model = _save(base, "a", LORA), zoo.load(base)
    for name, source in (("a", file), ("b", IA3), ("c", file)):
        zoo.adapt(model, source, name=name)
        trained = [path for path, p in model.named_parameters() if p.requires_grad]
        assert trained
        assert all(path.startswith(f"adapters.{name}.") for path in trained)
    model.adapters.a.requires_grad_()
    assert all(p.requires_grad for p in model.adapters.a.parameters())


def test_only_the_adapters_in_use_are_saved(base):
    (a, trained), (b, _) = _save(base, "a", LORA), _save(base, "b", IA3)
    model = zoo.load(base)
    zoo.adapt(model, a)
    zoo.adapt(model, b)
    zoo.use_adapters(model, "a")
    file = zoo.save_adapter(model, base.parent / "again.safetensors")
    header = read_header(file)
    assert list(header.spec["adapters"]) == ["a"]
    assert "ia3" not in {row["name"] for row in header.providers}
    assert torch.equal(_logits(zoo.load(file)), _logits(trained))
    zoo.use_adapters(model, "b")  # it was not removed from the model


def test_a_file_with_two_adapters_adds_both(base):
    model = zoo.load(base)
    zoo.adapt(model, LORA, name="a")
    zoo.adapt(model, IA3, name="b")
    zoo.use_adapters(model, "a", "b")
    file = zoo.save_adapter(model, base.parent / "both.safetensors")
    other = zoo.adapt(zoo.load(base), file, name="x")
    assert {name for name, each in other.adapters.named_children() if each.enabled} == {
        "x_a",
        "x_b",
    }
    assert torch.equal(_logits(other), _logits(model))


def test_an_adapter_of_another_model_is_rejected(base):
    file, _ = _save(base, "a", LORA)
    other = zoo.compose("gpt2-tiny", seed=1).eval()
    with pytest.raises(zoo.ArtifactError, match=r"is an adapter of .*, but this model has another"):
        zoo.adapt(other, file)


def test_a_file_without_adapters_is_rejected(base):
    with pytest.raises(zoo.ArtifactError, match="has no adapters"):
        zoo.adapt(zoo.load(base), base)


def test_a_file_that_also_changes_the_model_is_loaded_as_a_whole(base):
    model = zoo.load(base)
    zoo.adapt(model, LORA, name="a")
    with torch.no_grad():
        model.get_parameter("decoder.blocks.0.attention.out.bias").add_(0.1)
    file = zoo.save_adapter(model, base.parent / "changed.safetensors")
    assert torch.equal(_logits(zoo.load(file)), _logits(model))
    with pytest.raises(zoo.ArtifactError, match="also has weights of the model itself"):
        zoo.adapt(zoo.load(base), file)


def test_a_model_without_a_known_base_needs_one(base):
    model = zoo.compose("gpt2-tiny").eval()
    zoo.adapt(model, LORA)
    with pytest.raises(zoo.ArtifactError, match="the base of this model is not known"):
        zoo.save_adapter(model, base.parent / "a.safetensors")
    zoo.save_adapter(model, base.parent / "a.safetensors", base=base)


def test_an_invalid_adapter_is_rejected_and_changes_nothing(base):
    model = zoo.load(base)
    with pytest.raises(zoo.SpecError, match=r"adapters\.adapter\.rank"):
        zoo.adapt(model, {**LORA, "rank": 0})
    assert all(p.requires_grad for p in model.parameters())


def test_an_adapter_on_the_hub_finds_its_base_there(hub, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    commit = zoo.push(zoo.compose("gpt2-tiny"), "zoo-team/base").commit
    model = zoo.load("zoo-team/base")
    zoo.adapt(model, LORA, name="a")
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter += 0.1
    file = zoo.save_adapter(model, tmp_path / "a.safetensors")
    header = read_header(file)
    assert (header.base["name"], header.base["revision"]) == ("zoo-team/base", commit)
    assert header.provenance["base_model"] == "zoo-team/base"
    zoo.push(zoo.compose("gpt2-tiny", seed=1), "zoo-team/base")  # the pinned commit is used
    zoo.push(file, "zoo-team/a")
    assert torch.equal(_logits(zoo.load("zoo-team/a")), _logits(model))


def test_an_adapter_of_a_local_base_is_not_pushed(hub, base, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    file, _ = _save(base, "a", LORA)
    with pytest.raises(zoo.HubError, match="push the base first"):
        zoo.push(file, "zoo-team/a")
