"""``zoo merge``, and adapters in other commands."""

import json

import peft
import pytest
import torch
import transformers
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app


def _run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return f"{done.output}{done.exception or ''}"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zoo.save(zoo.compose("gpt2-tiny"), "base.safetensors")
    model = zoo.load("base.safetensors")
    zoo.adapt(model, {"type": "lora", "rank": 2, "targets": ["*.{query,value}"]}, name="style")
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter += 0.1
    zoo.save_adapter(model, "style.safetensors")
    return tmp_path


def test_the_merged_model_is_whole_and_has_the_same_outputs(files):
    assert "merged.safetensors: " in _run("merge", "style.safetensors", "-o", "merged.safetensors")
    adapted, merged = (zoo.load(f"{name}.safetensors") for name in ("style", "merged"))
    batch = merged.example(2, 5, torch.Generator().manual_seed(0))
    torch.testing.assert_close(merged(batch).logits, adapted(batch).logits)
    assert not any(name.startswith("adapters.") for name in merged.state_dict())
    (files / "base.safetensors").unlink()
    assert "FAILED" not in _run("verify", "merged.safetensors")


def test_info_and_verify_name_the_base(files):
    assert "\nbase: base.safetensors, " in _run("info", "style.safetensors")
    assert json.loads(_run("info", "style.safetensors", "--json"))["base"]["name"] == (
        "base.safetensors"
    )
    assert "tensors of base.safetensors match their sha256" in _run("verify", "style.safetensors")


def test_the_new_place_of_a_base_is_an_option(files):
    ids = ("--ids", "3 4", "--max-length", "4")
    expected = _run("generate", "style.safetensors", *ids)
    (files / "there").mkdir()
    (files / "base.safetensors").rename(files / "there/base.safetensors")
    message = _run("generate", "style.safetensors", *ids, code=1)
    assert "expected base.safetensors, 36 tensors with sha256 " in message
    base = ("--base", "there/base.safetensors")
    assert _run("generate", "style.safetensors", *ids, *base) == expected
    assert "36 tensors of there/base.safetensors" in _run("verify", "style.safetensors", *base)
    _run("merge", "style.safetensors", "-o", "merged.safetensors", *base)
    assert "has no base" in _run("generate", "merged.safetensors", *ids, *base, code=1)
    assert "has no base" in _run("verify", "merged.safetensors", *base, code=1)
    message = _run("export", "merged.safetensors", "folder", *base, code=2)
    assert "all its weights" in message
    assert "--base" in message


def test_an_adapter_of_a_model_that_was_not_imported_is_not_exported(files):
    message = _run("export", "style.safetensors", "folder", code=1)
    assert "base.safetensors was not imported from another library" in message


def test_a_model_without_adapters_is_not_merged(files):
    _run("merge", "base.safetensors", "-o", "merged.safetensors", code=1)
    assert not (files / "merged.safetensors").exists()


def test_folders_of_peft_are_imported_and_exported(files):
    config = transformers.BertConfig(
        vocab_size=31,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=18,
    )
    model = transformers.BertForMaskedLM(config)
    model.save_pretrained("bert")
    lora = peft.LoraConfig(r=2, target_modules=["query"])
    peft.get_peft_model(model, lora).save_pretrained("adapter")
    _run("import", "bert", "-o", "bert.safetensors")
    _run("import", "adapter", "-o", "a.safetensors", code=1)  # without a base
    options = ("--base", "bert.safetensors", "-o", "a.safetensors")
    _run("import", "bert", *options, code=1)  # not an adapter
    assert "adapter of bert.safetensors" in _run("import", "adapter", *options)
    assert "without --to" in _run("export", "a.safetensors", "back", "--to", "bert", code=2)
    _run("export", "a.safetensors", "back")
    back = json.loads((files / "back" / "adapter_config.json").read_text())
    assert (back["peft_type"], back["r"]) == ("LORA", 2)
    assert back["target_modules"] == ["bert.encoder.layer.0.attention.self.query"]
