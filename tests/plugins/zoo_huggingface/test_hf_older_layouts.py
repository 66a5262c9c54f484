"""Import of files that older versions of transformers wrote."""

import json

import pytest
import torch
from hf_model_kit import compare_logits, hf_model, import_and_load
from hf_models import MODELS
from safetensors.torch import load_file, save_file

import zoo
from zoo.registry.component_registry import default_registry


@pytest.fixture
def save_model(tmp_path):
    """Saves a model with changed tensors and config."""

    def save(name, tensors=None, config=None):
        theirs, folder = hf_model(name), tmp_path / "theirs"
        theirs.save_pretrained(folder)
        if tensors:
            stored = load_file(folder / "model.safetensors")
            save_file(tensors(stored), folder / "model.safetensors", {"format": "pt"})
        if config:
            file = folder / "config.json"
            file.write_text(json.dumps(config(json.loads(file.read_text()))))
        return folder, theirs

    return save


def assert_same_logits(name, folder, theirs, tmp_path):
    actual, expected = compare_logits(name, import_and_load(folder, tmp_path), theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_bert_with_gamma_and_beta_a_pooler_and_a_copied_table(save_model, tmp_path):
    def older(stored):
        table = stored["bert.embeddings.word_embeddings.weight"]
        renamed = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): tensor
            for name, tensor in stored.items()
        }
        return renamed | {
            "bert.embeddings.position_ids": torch.arange(16)[None],
            "bert.pooler.dense.weight": torch.randn(8, 8),
            "bert.pooler.dense.bias": torch.randn(8),
            "cls.seq_relationship.weight": torch.randn(2, 8),
            "cls.seq_relationship.bias": torch.randn(2),
            "cls.predictions.decoder.weight": table.clone(),
        }

    assert_same_logits("bert", *save_model("bert", older), tmp_path)


def test_gemma3_with_the_keys_of_transformers_4(save_model, tmp_path):
    def older(config):
        del config["rope_parameters"], config["layer_types"]
        return config | {
            "sliding_window_pattern": 2,
            "rope_theta": 1e6,
            "rope_local_base_freq": 10000,
            "rope_scaling": None,
        }

    assert_same_logits("gemma3_text", *save_model("gemma3_text", None, older), tmp_path)


def test_modernbert_with_the_keys_of_transformers_4(save_model, tmp_path):
    def older(config):
        del config["rope_parameters"], config["layer_types"]
        return config | {
            "global_attn_every_n_layers": 2,
            "global_rope_theta": 160000.0,
            "local_rope_theta": 10000.0,
            "reference_compile": False,
        }

    assert_same_logits("modernbert", *save_model("modernbert", None, older), tmp_path)


def test_a_tied_table_that_differs_raises(save_model, tmp_path):
    folder, _ = save_model(
        "bert", lambda stored: stored | {"cls.predictions.decoder.weight": torch.ones(31, 8)}
    )
    message = r"'cls\.predictions\.decoder\.weight' .*'bert\.embeddings\.word_embeddings\.weight'"
    with pytest.raises(zoo.ZooError, match=message):
        import_and_load(folder, tmp_path)


def test_gpt2_without_a_prefix_and_with_its_masks(save_model, tmp_path):
    def older(stored):
        masks = {f"h.{n}.attn.bias": torch.ones(1, 1, 24, 24) for n in range(2)}
        return {name.removeprefix("transformer."): t for name, t in stored.items()} | masks

    assert_same_logits("gpt2", *save_model("gpt2", older), tmp_path)


def test_a_different_output_table_in_the_file_overrides_the_config(save_model, tmp_path):
    folder, theirs = save_model(
        "gpt2", lambda stored: stored | {"lm_head.weight": torch.randn(31, 8)}
    )
    theirs = MODELS["gpt2"][0].from_pretrained(folder).eval()
    ours = import_and_load(folder, tmp_path)
    assert ours.spec["model"]["decoder"]["output"]["tied"] is False
    actual, expected = compare_logits("gpt2", ours, theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_t5_with_copies_of_its_table_and_without_a_scale_in_the_config(save_model, tmp_path):
    def older(stored):
        sides = ("encoder", "decoder")
        copies = {f"{s}.embed_tokens.weight": stored["shared.weight"].clone() for s in sides}
        return stored | copies | {"lm_head.weight": stored["shared.weight"].clone()}

    def without(config):
        return {k: v for k, v in config.items() if k != "scale_decoder_outputs"}

    assert_same_logits("t5", *save_model("t5", older, without), tmp_path)


def test_t5_with_a_different_encoder_table_raises(save_model, tmp_path):
    folder, _ = save_model(
        "t5", lambda stored: stored | {"encoder.embed_tokens.weight": torch.ones(31, 8)}
    )
    with pytest.raises(zoo.ZooError, match=r"'encoder\.embed_tokens\.weight' .*'shared\.weight'"):
        import_and_load(folder, tmp_path)


def test_t5_1_1_of_transformers_4(save_model, tmp_path):
    def older(config):
        dropped = ("scale_decoder_outputs", "dense_act_fn", "is_gated_act")
        kept = {k: v for k, v in config.items() if k not in dropped}
        return kept | {"tie_word_embeddings": False}

    assert_same_logits("t5-1.1", *save_model("t5-1.1", None, older), tmp_path)


def test_llama_with_rope_theta_at_the_top_level(save_model, tmp_path):
    def older(config):
        inner = config.pop("rope_parameters")
        return config | {"rope_theta": inner["rope_theta"], "rope_scaling": None}

    assert_same_logits("llama-biased", *save_model("llama-biased", None, older), tmp_path)


def test_llama_with_rope_theta_in_several_places(save_model, tmp_path):
    def both(config):
        outer = {"rope_theta": 9.0, "rope_parameters": {"rope_theta": 30.0}}
        return config | outer | {"rope_scaling": {"rope_type": "default", "rope_theta": 70.0}}

    folder, _ = save_model("llama", None, both)
    assert_same_logits("llama", folder, MODELS["llama"][0].from_pretrained(folder).eval(), tmp_path)


def test_wav2vec2_with_the_old_names_of_weight_norm(save_model, tmp_path):
    def older(stored):
        names = {".parametrizations.weight.original0": ".weight_g",
                 ".parametrizations.weight.original1": ".weight_v"}  # fmt: skip
        for new, old in names.items():
            stored = {name.replace(new, old): tensor for name, tensor in stored.items()}
        assert "wav2vec2.encoder.pos_conv_embed.conv.weight_g" in stored
        return stored

    assert_same_logits("wav2vec2", *save_model("wav2vec2", older), tmp_path)


def test_deberta_v3_with_heads_of_pretraining_and_no_class(save_model, tmp_path):
    """As published: transformers loads the encoder and ignores the other tensors."""

    def published(stored):
        names = (
            *("lm_predictions.lm_head.bias", "lm_predictions.lm_head.LayerNorm.weight"),
            *("mask_predictions.dense.weight", "mask_predictions.classifier.bias"),
            "deberta.embeddings.position_embeddings.weight",
        )
        unused = {name: torch.ones(8) for name in names}
        encoder = {k: v for k, v in stored.items() if k.startswith("deberta.")}
        return encoder | unused

    def without_class(config):
        return {k: v for k, v in config.items() if k not in ("architectures", "legacy")}

    folder, theirs = save_model("deberta-v2", published, without_class)
    assert_same_logits("deberta-v2", folder, theirs.deberta, tmp_path)


def test_marian_with_its_positions_stored(save_model, tmp_path):
    def older(stored):
        positions = {
            f"model.{s}.embed_positions.weight": torch.ones(32, 8) for s in ("encoder", "decoder")
        }
        return stored | positions

    assert_same_logits("marian", *save_model("marian", older), tmp_path)


def test_half_precision_is_kept(tmp_path):
    theirs = hf_model("llama").half()
    theirs.save_pretrained(tmp_path / "theirs")
    assert (
        import_and_load(tmp_path / "theirs", tmp_path).decoder.final_norm.weight.dtype
        == torch.float16
    )


def test_shards_are_imported(tmp_path):
    theirs = hf_model("llama")
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size="4KB")
    assert (tmp_path / "theirs" / "model.safetensors.index.json").exists()
    assert_same_logits("llama", tmp_path / "theirs", theirs, tmp_path)


def test_a_bart_without_head_generates_as_with_one(tmp_path):
    """As facebook/bart-base: the class is BartModel, and there is no bias of the logits."""
    theirs = hf_model("bart")
    theirs.final_logits_bias.zero_()
    theirs.model.save_pretrained(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    actual, expected = compare_logits("bart", ours, theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    exported = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    again = MODELS["bart"][0].from_pretrained(exported).eval()
    torch.testing.assert_close(compare_logits("bart", ours, again)[1], expected, atol=0, rtol=0)


def test_the_spec_of_an_older_file_lacks_options_that_were_added_since():
    importer = next(each for each in default_registry().importers if each.name == "llama")
    spec = zoo.load_spec(importer.spec(importer.test_config)).resolve()
    del spec["model"]["decoder"]["attention"]["align"]["sink"]
    assert importer.config(spec, importer.test_config)["hidden_size"] == 16
