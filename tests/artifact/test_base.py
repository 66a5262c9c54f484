"""Artifacts without the tensors of their base, which is pinned by its hash."""

import shutil

import pytest
import torch

import zoo
from zoo.artifact import read_header
from zoo.artifact.merging import merge_adapters

LORA = {"type": "lora", "rank": 2, "targets": ["*.{query,value}"]}


@pytest.fixture
def files(tmp_path):
    """A folder with a base and an adapter of it."""
    zoo.save(zoo.compose("gpt2-tiny"), tmp_path / "base.safetensors")
    model = zoo.load(tmp_path / "base.safetensors")
    zoo.adapt(model, LORA, name="style")
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter += 0.1
    zoo.save_adapter(model, tmp_path / "style.safetensors")
    return tmp_path


def _logits(model):
    return model(model.example(2, 5, torch.Generator().manual_seed(0))).logits


def test_the_file_has_the_adapter_only_and_names_its_base(files):
    header = read_header(files / "style.safetensors")
    assert all(name.startswith("adapters.style.layers.") for name in header.tensors)
    assert header.base["name"] == "base.safetensors"
    assert header.base["revision"] is None
    assert len(header.base["sha256"]) == 64
    assert set(header.base["tensors"]) == set(read_header(files / "base.safetensors").tensors)
    assert header.as_json()["base"] == header.base


def test_a_loaded_adapter_has_its_base_and_can_be_saved_again(files):
    model = zoo.load(files / "style.safetensors")
    assert not model.training
    zoo.save_adapter(model, files / "again.safetensors")
    assert torch.equal(_logits(zoo.load(files / "again.safetensors")), _logits(model))


def test_the_base_of_a_loaded_adapter_is_frozen(files):
    model = zoo.load(files / "style.safetensors")
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained == set(read_header(files / "style.safetensors").tensors)
    zoo.save(model, files / "whole.safetensors")
    again = zoo.load(files / "whole.safetensors")
    assert {name for name, p in again.named_parameters() if p.requires_grad} == trained


def test_the_folder_of_both_files_can_be_moved(files, tmp_path_factory):
    target = tmp_path_factory.mktemp("moved") / "folder"
    shutil.copytree(files, target)
    expected = _logits(zoo.load(files / "style.safetensors"))
    shutil.rmtree(files)
    assert torch.equal(_logits(zoo.load(target / "style.safetensors")), expected)


def test_a_missing_base_is_rejected(files):
    (files / "base.safetensors").unlink()
    sha256 = read_header(files / "style.safetensors").base["sha256"]
    with pytest.raises(
        zoo.ArtifactError,
        match=rf"expected {files}/base\.safetensors, 36 tensors with sha256 {sha256}; .* --base",
    ):
        zoo.load(files / "style.safetensors")


def test_the_new_place_of_a_base_can_be_given(files):
    expected = _logits(zoo.load(files / "style.safetensors"))
    (files / "there").mkdir()
    (files / "base.safetensors").rename(files / "there/model.safetensors")
    for base in (files / "there", files / "there/model.safetensors"):
        assert torch.equal(_logits(zoo.load(files / "style.safetensors", base=base)), expected)
    model = zoo.load(files / "there")
    zoo.adapt(model, files / "style.safetensors")
    assert torch.equal(_logits(model), expected)
    zoo.save_adapter(model, files / "style.safetensors")
    assert torch.equal(_logits(zoo.load(files / "style.safetensors")), expected)


def test_another_model_is_not_taken_as_the_base(files):
    zoo.save(zoo.compose("gpt2-tiny", seed=1), files / "other.safetensors")
    with pytest.raises(zoo.ArtifactError, match="another version of its base"):
        zoo.load(files / "style.safetensors", base=files / "other.safetensors")
    with pytest.raises(zoo.ArtifactError, match="has all its weights, so it has no base"):
        zoo.load(files / "base.safetensors", base=files / "other.safetensors")


def test_a_base_with_other_weights_is_rejected(files):
    zoo.save(zoo.compose("gpt2-tiny", seed=1), files / "base.safetensors")
    with pytest.raises(zoo.ArtifactError, match="another version of its base"):
        zoo.load(files / "style.safetensors")
    checks = {check.name: check.status for check in zoo.verify(files / "style.safetensors").checks}
    assert checks == {"header": "ok", "hashes": "ok", "base": "failed"}


def test_verify_checks_the_weights_of_the_base(files):
    found = zoo.verify(files / "style.safetensors")
    assert found.ok
    assert [check.name for check in found.checks] == ["header", "hashes", "base", "spec", "probe"]
    content = bytearray((files / "base.safetensors").read_bytes())
    content[-1] ^= 1
    (files / "base.safetensors").write_bytes(content)
    failed = zoo.verify(files / "style.safetensors")
    assert [check.name for check in failed.checks if check.failed] == ["base"]


def test_a_base_in_half_precision_is_converted_to_the_dtype_of_the_adapter(files):
    half = zoo.compose("gpt2-tiny", dtype="bfloat16")
    zoo.save(half, files / "half.safetensors")
    model = zoo.load(files / "half.safetensors", dtype="float32")
    zoo.adapt(model, LORA)
    zoo.save_adapter(model, files / "a.safetensors")
    loaded = zoo.load(files / "a.safetensors")
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}
    assert torch.equal(_logits(loaded), _logits(model))


def test_a_part_of_a_model_is_not_a_base(files):
    model = zoo.load(files / "style.safetensors")
    with pytest.raises(zoo.ArtifactError, match="itself a part of a model"):
        zoo.save_adapter(model, files / "b.safetensors", base=files / "style.safetensors")


def test_a_model_of_another_kind_is_not_a_base(files):
    zoo.save(zoo.compose("bahdanau-reversal"), files / "other.safetensors")
    model = zoo.load(files / "style.safetensors")
    with pytest.raises(zoo.ArtifactError, match="is not the base of this model"):
        zoo.save_adapter(model, files / "b.safetensors", base=files / "other.safetensors")


def test_a_whole_model_with_an_adapter_that_is_off_is_not_saved(files):
    model = zoo.load(files / "style.safetensors")
    zoo.use_adapters(model)
    with pytest.raises(zoo.ArtifactError, match="its adapter 'style' is off"):
        zoo.save(model, files / "whole.safetensors")


def test_a_merged_model_has_the_outputs_and_the_spec_of_a_plain_one(files):
    model = zoo.load(files / "style.safetensors")
    expected = _logits(model)
    merge_adapters(model)
    torch.testing.assert_close(_logits(model), expected)
    zoo.save(model, files / "merged.safetensors")
    merged, base = (read_header(files / f"{n}.safetensors") for n in ("merged", "base"))
    assert merged.spec == base.spec
    assert merged.providers == base.providers
    assert merged.component_paths == base.component_paths
    assert set(merged.tensors) == set(base.tensors)
    assert all(p.requires_grad for p in model.parameters())


def test_a_table_that_is_also_the_output_layer_cannot_be_merged(files):
    model = zoo.load(files / "base.safetensors")
    zoo.adapt(model, {"type": "lora", "rank": 2, "targets": ["embedding.table"]})
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter += 0.3
    with pytest.raises(zoo.ZooError, match="the merged model computes other outputs"):
        merge_adapters(model)


def test_a_model_without_adapters_is_not_merged(files):
    with pytest.raises(zoo.ZooError, match="nothing to merge"):
        merge_adapters(zoo.load(files / "base.safetensors"))
