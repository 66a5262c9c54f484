"""Unsupported configs and exports raise errors that name the key; nothing is executed."""

import json

import pytest
import torch
from artifact_kit import assert_same_bits
from hf_model_kit import hf_model, import_and_load
from hf_models import MODELS
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app


@pytest.fixture
def folder(tmp_path):
    """Saves a model with changed config keys; "absent" removes a key."""

    def save(name, **changes):
        folder = tmp_path / "theirs"
        hf_model(name).save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)  # it has end tokens too
        file = folder / "config.json"
        config = json.loads(file.read_text()) | changes
        file.write_text(json.dumps({k: v for k, v in config.items() if v != "absent"}))
        return folder

    return save


UNSUPPORTED = [
    ("bert", {"hidden_act": "mish"}, "'hidden_act' is \"mish\".*relu, gelu"),
    ("bert", {"position_embedding_type": "relative_key"}, "'position_embedding_type' is"),
    ("bert", {"is_decoder": True}, "'is_decoder' is true"),
    ("bert", {"tie_word_embeddings": False}, "'tie_word_embeddings' is false"),
    ("bert", {"vocab_size": "absent"}, "config.json has no 'vocab_size'"),
    ("bert", {"vocab_size": "31"}, "'vocab_size' is \"31\".*integer"),
    ("bert", {"num_hidden_layers": True}, "'num_hidden_layers' is true.*integer"),
    ("bert", {"layer_norm_eps": None}, "'layer_norm_eps' is null.*number"),
    ("bert", {"architectures": ["BertForQuestionAnswering"]}, "'architectures' .*BertForMasked"),
    ("bert", {"quantization_config": {"bits": 4}}, "'quantization_config' is"),
    ("roberta", {"pad_token_id": 0}, "'pad_token_id' is 0"),
    ("distilbert", {"activation": "mish"}, "'activation' is \"mish\".*gelu"),
    ("mpnet", {"relative_attention_num_buckets": 16}, "'relative_attention_num_buckets' is 16"),
    ("albert", {"num_hidden_groups": 2}, "'num_hidden_groups' is 2"),
    ("albert", {"embedding_size": 8}, "'embedding_size' is 8.*differ"),
    ("nomic_bert", {"rope_parameters": {"rope_type": "yarn"}}, "'rope_parameters' is .*scaled"),
    ("gemma3_text", {"model_type": "gemma3"}, "'model_type' is \"gemma3\".*images.*gemma3_text"),
    ("gemma3_text", {"rope_parameters": {"rope_theta": 9.0}}, "'rope_parameters' is .*full_att"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "'scale_attn_by_inverse_layer_idx' is"),
    ("gpt2", {"scale_attn_weights": False}, "'scale_attn_weights' is false"),
    ("gpt2", {"add_cross_attention": True}, "'add_cross_attention' is true"),
    ("t5", {"eos_token_id": [2, "3"]}, "'eos_token_id' is .*token ID"),
    ("t5", {"eos_token_id": [2, 3]}, r"'eos_token_id' is \[2, 3\].*one"),
    ("marian", {"eos_token_id": None}, "'eos_token_id' is null.*one end token"),
    ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "'rope_param.*dynamic"),
    ("llama", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "'rope_scaling' is"),
    ("llama", {"rope_parameters": {"full_attention": {"rope_theta": 5.0}}}, "rope_param.*layer"),
    ("llama", {"rms_norm_eps": 10**400}, "'rms_norm_eps' is 1000.*number"),
    ("llama", {"rms_norm_eps": float("inf")}, "config.json .*JSON.*Infinity"),
    ("llama", {"partial_rotary_factor": 0.5}, "'partial_rotary_factor' is 0.5"),
    ("mistral", {"num_key_value_heads": "absent"}, "config.json has no 'num_key_value_heads'"),
    ("qwen2", {"layer_types": ["full_attention", "sliding_attention"]}, "'layer_types' is"),
    ("marian", {"share_encoder_decoder_embeddings": False}, "'share_encoder_decoder_emb"),
    ("marian", {"decoder_vocab_size": 40}, "'decoder_vocab_size' is 40"),
    (
        "t5",
        {"feed_forward_proj": "gated-mish", "dense_act_fn": "absent", "is_gated_act": "absent"},
        "'feed_forward_proj' is \"gated-mish\"",
    ),
    ("t5", {"dense_act_fn": "mish"}, "'dense_act_fn' is \"mish\".*relu"),
    ("llama", {"is_causal": False}, "'is_causal' is false"),
    ("llama", {"is_causal": None}, "'is_causal' is null"),
    ("qwen2", {"is_causal": False}, "'is_causal' is false"),
    ("gpt2", {"is_causal": False}, "'is_causal' is false"),
    ("gpt2", {"num_hidden_layers": 1}, "'num_hidden_layers' is 1.*'n_layer'"),
    ("gpt2", {"is_encoder_decoder": True}, "'is_encoder_decoder' is true.*default.*false"),
    ("bert", {"pruned_heads": {"0": [1]}}, "'pruned_heads' is .*default"),
    ("vit", {"is_causal": True}, "'is_causal' is true.*importer 'vit' does not know"),
    ("llama", {"per_layer_config": {"0": {"hidden_act": "relu"}}}, "'per_layer_config' is"),
    ("vit", {"image_size": 9}, "'image_size' is 9.*multiple of patch_size .4"),
    ("wav2vec2", {"add_adapter": True}, "'add_adapter' is true"),
    ("wav2vec2", {"adapter_attn_dim": 16}, "'adapter_attn_dim' is 16"),
    ("wav2vec2", {"conv_dim": [4, 5]}, r"'conv_dim' is \[4, 5\]"),
    ("wav2vec2", {"conv_kernel": [5]}, "conv_kernel.*conv_stride.*num_feat_extract_layers"),
    ("wav2vec2", {"conv_stride": "two"}, "'conv_stride' is \"two\".*list"),
    ("wav2vec2", {"feat_extract_activation": "relu"}, "'feat_extract_activation' is"),
    ("wav2vec2", {"feat_extract_norm": "batch"}, "'feat_extract_norm' is \"batch\".*group, layer"),
    ("wav2vec2-classifier", {"use_weighted_layer_sum": True}, "'use_weighted_layer_sum' is true"),
    ("wavlm", {"num_buckets": 34, "max_bucket_distance": 27}, "'max_bucket_distance' is 27.*12 is"),
    ("deberta-v2", {"conv_kernel_size": 3}, "'conv_kernel_size' is 3; the convolution of v2"),
    ("deberta-v2", {"pos_att_type": ["p2p"]}, "'pos_att_type' is .*supported values: c2p, p2c"),
    ("deberta-v2", {"pos_att_type": []}, "'pos_att_type' is .*it has no known term"),
    ("deberta-v2", {"position_buckets": 40}, "'max_position_embeddings' is 16; it is too small"),
    ("deberta-v2", {"embedding_size": 6}, "'embedding_size' is 6; only 8 is supported"),
    ("deberta-v2-classifier", {"pooler_hidden_act": "silu"}, "'pooler_hidden_act' is \"silu\""),
    ("speech_to_text", {"conv_kernel_sizes": [3, 4]}, r"'conv_kernel_sizes' is \[3, 4\].*odd"),
    ("speech_to_text", {"pad_token_id": 0}, "'pad_token_id' is 0; it should be at least 1"),
    ("speech_to_text", {"decoder_start_token_id": 1}, "'decoder_start_token_id' is 1.*differ"),
    ("speech_to_text", {"input_channels": 2}, "'input_channels' is 2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "message"), UNSUPPORTED)
def test_unsupported_config_values_raise(folder, tmp_path, name, changes, message):
    with pytest.raises(zoo.ZooError, match=message):
        import_and_load(folder(name, **changes), tmp_path)
    assert not (tmp_path / "model.safetensors").exists()


def test_an_end_token_that_also_pads_is_not_padding(folder, tmp_path):
    ours = import_and_load(folder("gpt2", pad_token_id=2), tmp_path)
    assert ours.embedding.padding is None
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    assert json.loads((out / "config.json").read_text())["pad_token_id"] == 2


def test_code_in_the_folder_is_not_executed(folder, tmp_path):
    source = folder(
        "gpt2", auto_map={"AutoModelForCausalLM": "modeling.Evil"}, trust_remote_code=True
    )
    trace = tmp_path / "trace"
    (source / "modeling.py").write_text(f"open({str(trace)!r}, 'w')\n")
    import_and_load(source, tmp_path)
    assert not trace.exists()
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    assert "auto_map" not in json.loads((out / "config.json").read_text())


class WritesFile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_pickle_raises(folder, tmp_path):
    pickled = folder("gpt2")
    (pickled / "model.safetensors").unlink()
    torch.save(WritesFile(tmp_path / "trace"), pickled / "pytorch_model.bin")
    command = ["import", str(pickled), "-o", str(tmp_path / "m.safetensors")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert isinstance(result.exception, zoo.ZooError)
    assert "pickle" in str(result.exception)
    assert not (tmp_path / "trace").exists()


def test_a_pickle_named_safetensors_raises(folder, tmp_path):
    pickled = folder("gpt2")
    torch.save(WritesFile(tmp_path / "trace"), pickled / "model.safetensors")
    with pytest.raises(zoo.ZooError, match="safetensors file"):
        import_and_load(pickled, tmp_path)
    assert not (tmp_path / "trace").exists()


NOT_EXPORTABLE = [
    ("gpt2", ["model.decoder.norm.place=post"], "decoder.norm.place is 'post', .*gpt2.*'pre'"),
    ("gpt2", ["model.decoder.output.scale=2.0"], "model.decoder.output.scale is 2.0"),
    ("gpt2", ["model.decoder.position={type: sinusoidal}"], "position.length is not set"),
    ("llama", ["model.decoder.position.layout=interleaved"], "model.decoder.position.layout is"),
    ("llama", ["model.decoder.attention.bias=qkv"], "model.decoder.attention.bias is 'qkv'"),
    ("bert", ["model.encoder.norm.eps=1e-5", "model.eps=1e-6"], "model.eps is 1e-06"),
    ("vit", ["model.encoder.position.length=8"], "model.encoder.position.length is 8"),
    ("vit", ["model.pooling=summary"], "model.pooling is 'summary', .*vit"),
    ("t5", ["model.decoder.position.buckets=16"], "model.decoder.position.buckets is 16"),
    ("wav2vec2", ["model.source.conv_position=null"], "model.source.conv_position.kernel"),
    ("llama", ["model.decoder.position={type: alibi}"], "model.decoder.position.theta is not set"),
    ("vit", ["model.encoder.position=null"], "model.encoder.position.length is not set"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "message"), NOT_EXPORTABLE)
def test_exports_that_transformers_does_not_support_raise(folder, tmp_path, name, changes, message):
    spec = dict(import_and_load(folder(name), tmp_path).spec)
    file = zoo.save(zoo.compose(spec, overrides=changes), tmp_path / "changed.safetensors")
    with pytest.raises(zoo.ZooError, match=message):
        zoo.export_model(file, tmp_path / "out", to=name)
    assert not (tmp_path / "out").exists()


def test_an_export_of_another_model_type_raises(tmp_path):
    file = zoo.save(zoo.compose("gpt2-tiny"), tmp_path / "m.safetensors")
    with pytest.raises(zoo.ZooError, match=r"model\.type is 'language-model'.*bert.*'masked-lm'"):
        zoo.export_model(file, tmp_path / "out", to="bert")


@pytest.mark.parametrize(
    ("spec", "to"),
    [("gpt2-tiny", "gpt2"), ("llama-tiny", "llama"), ("bert-tiny", "bert"), ("vit-tiny", "vit"),
     ("minilm-tiny", "bert"), ("wav2vec2-tiny", "wav2vec2")],
)  # fmt: skip
def test_shipped_specs_can_be_exported(spec, to, tmp_path):
    model = zoo.compose(spec)
    file = zoo.save(model, tmp_path / "m.safetensors")
    folder = zoo.export_model(file, tmp_path / "out", to=to)
    if spec != "minilm-tiny":
        MODELS[to][0].from_pretrained(folder)
    imported = zoo.load(zoo.import_model(folder, tmp_path / "imported.safetensors"))
    assert_same_bits(imported.state_dict(), model.state_dict())
