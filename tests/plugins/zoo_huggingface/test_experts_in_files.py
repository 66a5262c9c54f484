"""Experts in files: one by one, all of a layer in one tensor, quantised."""

import json

import pytest
import torch
from hf_model_kit import compare_logits, hf_model, import_and_load
from hf_models import MODELS, published_experts
from safetensors.torch import load_file, save_file

import zoo
from zoo_huggingface.causal.gpt_oss import GptOss
from zoo_huggingface.causal.qwen3_moe import Qwen3Moe

GATE_UP = "model.layers.0.mlp.experts.gate_up_proj"
NAMES = {
    "mixtral": "model.layers.0.block_sparse_moe.experts.3.w3.weight",
    "qwen2_moe": "model.layers.0.mlp.experts.3.up_proj.weight",
    "qwen3_moe": "model.layers.0.mlp.experts.3.up_proj.weight",
}


@pytest.mark.parametrize("name", NAMES)
def test_files_with_the_names_of_transformers_in_memory(name, tmp_path):
    theirs = hf_model(name)
    theirs.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.safetensors"
    assert NAMES[name] in load_file(file)
    stored = {key: tensor.clone() for key, tensor in theirs.state_dict().items()}
    assert stored[GATE_UP].ndim == 3
    save_file(stored, file, {"format": "pt"})

    ours = import_and_load(tmp_path / "theirs", tmp_path)

    actual, expected = compare_logits(name, ours, theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    # An export has the names of published files, which transformers loads too.
    exported = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "exported")
    assert NAMES[name] in load_file(exported / "model.safetensors")
    again = MODELS[name][0].from_pretrained(exported).eval()
    assert torch.equal(compare_logits(name, ours, again)[1], expected)


def test_bfloat16_weights_of_gpt_oss_keep_their_bits(tmp_path):
    theirs = hf_model("gpt_oss").to(torch.bfloat16)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    block = ours.decoder.blocks[1]
    assert block.attention.align.sink.dtype == torch.bfloat16
    assert torch.equal(block.attention.align.sink, theirs.model.layers[1].self_attn.sinks)
    expected = theirs.model.layers[1].mlp.experts.gate_up_proj[2].T[1::2]
    assert torch.equal(block.feed_forward.experts[2].up.weight, expected)
    exported = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "exported")
    original = load_file(tmp_path / "theirs" / "model.safetensors")
    written = load_file(exported / "model.safetensors")
    assert original.keys() == written.keys()
    assert all(torch.equal(original[key], written[key]) for key in original)


def test_quantised_weights_are_rejected_in_one_line(tmp_path):
    hf_model("gpt_oss").save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "config.json"
    config = json.loads(file.read_text())
    quantised = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    file.write_text(json.dumps(config | {"quantization_config": quantised}))
    message = (
        r"config.json: 'quantization_config' is \{\"quant_method\": \"mxfp4\".*; quantized weights "
        "are not supported; import a copy of the model with bfloat16 weights"
    )
    with pytest.raises(zoo.ZooError, match=message) as error:
        import_and_load(tmp_path / "theirs", tmp_path)
    assert "\n" not in str(error.value)


def test_the_angles_of_gpt_oss_are_those_of_yarn_if_the_config_has_none():
    config = {k: v for k, v in published_experts.GPT_OSS.items() if k != "rope_scaling"}
    assert GptOss().spec(config) == GptOss().spec(published_experts.GPT_OSS)


def test_both_names_of_the_number_of_experts():
    config = published_experts.QWEN3_MOE
    renamed = {k: v for k, v in config.items() if k != "num_experts"} | {"num_local_experts": 128}
    assert Qwen3Moe().spec(renamed) == Qwen3Moe().spec(config)
    with pytest.raises(zoo.ZooError, match="'num_experts' is 128; it should equal 'num_local_exp"):
        Qwen3Moe().spec({**config, "num_local_experts": 64})


def test_layers_without_experts_are_exported_by_their_numbers(tmp_path):
    hf_model("qwen2_moe-window").save_pretrained(tmp_path / "theirs")
    zoo.import_model(tmp_path / "theirs", tmp_path / "model.safetensors")
    exported = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "exported")
    config = json.loads((exported / "config.json").read_text())
    assert (config["decoder_sparse_step"], config["mlp_only_layers"]) == (1, [0, 2])
    assert (config["intermediate_size"], config["moe_intermediate_size"]) == (12, 8)
