"""Files as older versions wrote them come in just the same."""

import json

import pytest
import torch
from hf_model_kit import MODELS, compare_logits, hf_model, import_and_load
from safetensors.torch import load_file, save_file

import zoo


@pytest.fixture
def save_model(tmp_path):
    """Saves a model with its tensors and its config changed."""

    def save(name, tensors=None, config=None):
        theirs, folder = hf_model(name), tmp_path / "theirs"
        theirs.save_pretrained(folder)
        if tensors:
            held = load_file(folder / "model.safetensors")
            save_file(tensors(held), folder / "model.safetensors", {"format": "pt"})
        if config:
            file = folder / "config.json"
            file.write_text(json.dumps(config(json.loads(file.read_text()))))
        return folder, theirs

    return save


def same(name, folder, theirs, tmp_path):
    actual, expected = compare_logits(name, import_and_load(folder, tmp_path), theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_bert_with_gamma_and_beta_a_pooler_and_a_copied_table(save_model, tmp_path):
    def older(held):
        table = held["bert.embeddings.word_embeddings.weight"]
        renamed = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): tensor
            for name, tensor in held.items()
        }
        return renamed | {
            "bert.embeddings.position_ids": torch.arange(16)[None],
            "bert.pooler.dense.weight": torch.randn(8, 8),
            "bert.pooler.dense.bias": torch.randn(8),
            "cls.seq_relationship.weight": torch.randn(2, 8),
            "cls.seq_relationship.bias": torch.randn(2),
            "cls.predictions.decoder.weight": table.clone(),
        }

    same("bert", *save_model("bert", older), tmp_path)


def test_a_table_that_is_said_to_be_shared_but_is_not_is_refused(save_model, tmp_path):
    folder, _ = save_model(
        "bert", lambda held: held | {"cls.predictions.decoder.weight": torch.ones(31, 8)}
    )
    message = "'cls.predictions.decoder.weight' is another table than 'bert.embeddings.word"
    with pytest.raises(zoo.ZooError, match=message):
        import_and_load(folder, tmp_path)


def test_gpt2_without_a_prefix_and_with_its_masks(save_model, tmp_path):
    def older(held):
        masks = {f"h.{n}.attn.bias": torch.ones(1, 1, 24, 24) for n in range(2)}
        return {name.removeprefix("transformer."): t for name, t in held.items()} | masks

    same("gpt2", *save_model("gpt2", older), tmp_path)


def test_an_output_table_in_the_file_counts_whatever_the_config_says(save_model, tmp_path):
    folder, theirs = save_model("gpt2", lambda held: held | {"lm_head.weight": torch.randn(31, 8)})
    theirs = MODELS["gpt2"][0].from_pretrained(folder).eval()
    ours = import_and_load(folder, tmp_path)
    assert ours.spec["model"]["decoder"]["output"]["tied"] is False
    actual, expected = compare_logits("gpt2", ours, theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_t5_with_copies_of_its_table_and_no_word_on_the_scale(save_model, tmp_path):
    def older(held):
        sides = ("encoder", "decoder")
        copies = {f"{s}.embed_tokens.weight": held["shared.weight"].clone() for s in sides}
        return held | copies | {"lm_head.weight": held["shared.weight"].clone()}

    def without(config):
        return {k: v for k, v in config.items() if k != "scale_decoder_outputs"}

    same("t5", *save_model("t5", older, without), tmp_path)


def test_t5_whose_encoder_has_a_table_of_its_own_is_refused(save_model, tmp_path):
    folder, _ = save_model(
        "t5", lambda held: held | {"encoder.embed_tokens.weight": torch.ones(31, 8)}
    )
    with pytest.raises(zoo.ZooError, match=r"'encoder\.embed_tokens\.weight' is another table"):
        import_and_load(folder, tmp_path)


def test_t5_of_version_1_1_as_transformers_4_wrote_it(save_model, tmp_path):
    def older(config):
        dropped = ("scale_decoder_outputs", "dense_act_fn", "is_gated_act")
        kept = {k: v for k, v in config.items() if k not in dropped}
        return kept | {"tie_word_embeddings": False}

    same("t5-1.1", *save_model("t5-1.1", None, older), tmp_path)


def test_llama_with_its_base_in_the_config_itself(save_model, tmp_path):
    def older(config):
        inner = config.pop("rope_parameters")
        return config | {"rope_theta": inner["rope_theta"], "rope_scaling": None}

    same("llama-biased", *save_model("llama-biased", None, older), tmp_path)


def test_llama_with_a_base_in_several_places(save_model, tmp_path):
    def both(config):
        outer = {"rope_theta": 9.0, "rope_parameters": {"rope_theta": 30.0}}
        return config | outer | {"rope_scaling": {"rope_type": "default", "rope_theta": 70.0}}

    folder, _ = save_model("llama", None, both)
    same("llama", folder, MODELS["llama"][0].from_pretrained(folder).eval(), tmp_path)


def test_wav2vec2_with_the_old_names_of_weight_norm(save_model, tmp_path):
    def older(held):
        names = {".parametrizations.weight.original0": ".weight_g",
                 ".parametrizations.weight.original1": ".weight_v"}  # fmt: skip
        for new, old in names.items():
            held = {name.replace(new, old): tensor for name, tensor in held.items()}
        assert "wav2vec2.encoder.pos_conv_embed.conv.weight_g" in held
        return held

    same("wav2vec2", *save_model("wav2vec2", older), tmp_path)


def test_marian_with_its_positions_stored(save_model, tmp_path):
    def older(held):
        stored = {
            f"model.{s}.embed_positions.weight": torch.ones(32, 8) for s in ("encoder", "decoder")
        }
        return held | stored

    same("marian", *save_model("marian", older), tmp_path)


def test_half_precision_stays_half(tmp_path):
    theirs = hf_model("llama").half()
    theirs.save_pretrained(tmp_path / "theirs")
    assert (
        import_and_load(tmp_path / "theirs", tmp_path).decoder.final_norm.weight.dtype
        == torch.float16
    )


def test_shards_come_in(tmp_path):
    theirs = hf_model("llama")
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size="4KB")
    assert (tmp_path / "theirs" / "model.safetensors.index.json").exists()
    same("llama", tmp_path / "theirs", theirs, tmp_path)
