"""Classifiers and taggers: labels, probabilities of pipelines, and what is rejected."""

import json

import pytest
import torch
import transformers as hf
from hf_head_kit import LABELS, fast_tokenizer, head_model
from hf_model_kit import compare_logits, import_and_load
from hf_models import MODELS
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.registry.component_registry import default_registry

TEXTS = ["the cat sat", "cats on the mat", "the mats"]
BERT = MODELS["bert"][1]


def save(folder, model):
    model.save_pretrained(folder)
    fast_tokenizer().save_pretrained(folder)
    return folder


def predict(tmp_path, *texts):
    arguments = ["predict", str(tmp_path / "model.safetensors"), *texts, "--json", "--top", "3"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("changes", "multi_label"),
    [
        ({}, False),
        ({"problem_type": "single_label_classification"}, False),
        ({"problem_type": "multi_label_classification"}, True),
        ({"id2label": {0: "relevant"}, "label2id": {"relevant": 0}}, True),
    ],
)
def test_classes_have_the_probabilities_of_the_pipeline(tmp_path, changes, multi_label):
    theirs = head_model("BertForSequenceClassification", BERT, **changes)
    folder = save(tmp_path / "theirs", theirs)
    ours = import_and_load(folder, tmp_path)
    assert ours.multi_label == multi_label

    rows = predict(tmp_path, *TEXTS)

    pipeline = hf.pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    for row, expected in zip(rows, pipeline(TEXTS), strict=True):
        assert [label for label, _ in row["top"]] == [each["label"] for each in expected]
        found = torch.tensor([probability for _, probability in row["top"]])
        scores = torch.tensor([each["score"] for each in expected])
        torch.testing.assert_close(found, scores, atol=1e-6, rtol=0)


def test_a_head_without_a_table_to_share_does_not_need_one(tmp_path):
    theirs = head_model("BertForSequenceClassification", BERT, tie_word_embeddings=False)
    theirs.save_pretrained(tmp_path / "theirs")
    actual, expected = compare_logits(
        "bert", import_and_load(tmp_path / "theirs", tmp_path), theirs
    )
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("labels", [{0: "score"}, {0: "joy", 1: "fear"}])
def test_numbers_are_those_of_the_pipeline(tmp_path, labels):
    changes = {"id2label": labels, "label2id": {name: i for i, name in labels.items()}}
    theirs = head_model(
        "RobertaForSequenceClassification",
        MODELS["roberta"][1],
        problem_type="regression",
        pad_token_id=1,
        **changes,
    )
    theirs.save_pretrained(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    assert ours.name == "regressor"
    actual, expected = compare_logits("roberta", ours, theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    config = hf.AutoConfig.from_pretrained(out)
    assert config.problem_type == "regression"
    assert config.id2label == labels


def test_tokens_have_the_probabilities_of_the_pipeline(tmp_path):
    folder = save(tmp_path / "theirs", head_model("BertForTokenClassification", BERT))
    import_and_load(folder, tmp_path)

    rows = predict(tmp_path, *TEXTS)

    pipeline = hf.pipeline(
        "token-classification", model=str(folder), ignore_labels=[], device="cpu"
    )
    for row, expected in zip(rows, pipeline(TEXTS), strict=True):
        positions = row["positions"]
        assert [each["label"] for each in positions] == [each["entity"] for each in expected]
        found = torch.tensor([each["probability"] for each in positions])
        scores = torch.tensor([float(each["score"]) for each in expected])
        torch.testing.assert_close(found, scores, atol=1e-6, rtol=0)
    assert [each["name"] for each in rows[0]["positions"]] == ["the", "cat", "sat"]


def test_labels_are_exported(tmp_path):
    folder = save(tmp_path / "theirs", head_model("BertForSequenceClassification", BERT))
    import_and_load(folder, tmp_path)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    config = hf.AutoConfig.from_pretrained(out)
    assert config.id2label == LABELS
    assert config.label2id == {name: i for i, name in LABELS.items()}
    assert hf.AutoTokenizer.from_pretrained(out)(TEXTS)["input_ids"]


def test_a_text_of_too_many_tokens_raises_with_the_remedy(tmp_path):
    folder = save(tmp_path / "theirs", head_model("BertForSequenceClassification", BERT))
    ours = import_and_load(folder, tmp_path)
    with pytest.raises(zoo.DataError, match="18 tokens, more than max_length 16; set truncate"):
        zoo.predict(ours, ["cat " * 16])
    zoo.import_model(
        folder, tmp_path / "cut.safetensors", overrides=["preprocessing.source.truncate=true"]
    )
    expected = zoo.predict(ours, ["cat " * 14])
    assert zoo.predict(zoo.load(tmp_path / "cut.safetensors"), ["cat " * 16]) == expected


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"problem_type": "ranking"}, "'problem_type' is \"ranking\"; supported values: single"),
        ({"id2label": {"0": "a", "2": "b"}}, "'id2label' is .*should name the classes 0 to 1"),
        ({"id2label": {"0": "a"}, "num_labels": 3}, "'num_labels' is 3; but 'id2label' has 1"),
        ({"id2label": ["a", "b"]}, "'id2label' is .*should be a mapping"),
        ({"classifier_dropout": "high"}, "'classifier_dropout' is \"high\"; it should be a number"),
        ({"architectures": ["BertForQuestionAnswering"]}, "'architectures' is .*BertModel"),
    ],
)
def test_other_heads_and_labels_raise(tmp_path, changes, reason):
    folder = tmp_path / "theirs"
    head_model("BertForSequenceClassification", BERT).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, **changes}), encoding="utf-8")
    with pytest.raises(zoo.ZooError, match=reason):
        import_and_load(folder, tmp_path)


def test_a_model_trained_in_the_zoo_is_exported_with_its_labels(tmp_path):
    theirs = head_model("DistilBertForSequenceClassification", MODELS["distilbert"][1])
    folder = save(tmp_path / "theirs", theirs)
    spec = json.loads(json.dumps(import_and_load(folder, tmp_path).spec))
    spec["model"] |= {"classes": 2, "dropout": 0.25}
    spec["preprocessing"]["target"]["classes"] = ["bad", "good"]
    file = zoo.save(zoo.compose(spec), tmp_path / "trained.safetensors")
    out = zoo.export_model(file, tmp_path / "out", to="distilbert")
    config = hf.AutoConfig.from_pretrained(out)
    assert config.id2label == {0: "bad", 1: "good"}
    assert config.seq_classif_dropout == 0.25


def test_a_bare_encoder_gives_features_and_no_classes(tmp_path):
    folder = save(tmp_path / "theirs", head_model("BertModel", BERT))
    ours = import_and_load(folder, tmp_path)
    assert ours.name == "features"
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "model.safetensors"), "the cat"])
    assert "'features' does not compute one class for each item; it gives features" in str(
        result.exception
    )


def test_a_bare_encoder_without_a_pooler(tmp_path):
    theirs = head_model("BertModel", BERT)
    theirs.pooler = None
    theirs.save_pretrained(tmp_path / "theirs")
    assert import_and_load(tmp_path / "theirs", tmp_path).pooler is None


MODERN_SWITCHES = {
    "classifier_pooling": "mean", "classifier_bias": True, "norm_bias": True,
    "classifier_activation": "relu", "norm_eps": 0.01,
}  # fmt: skip


@pytest.mark.parametrize("head", ["ForSequenceClassification", "ForTokenClassification"])
def test_heads_of_modernbert_have_other_layers(tmp_path, head):
    theirs = head_model(f"ModernBert{head}", MODELS["modernbert"][1], **MODERN_SWITCHES)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    actual, expected = compare_logits("modernbert", ours, theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    again = type(theirs).from_pretrained(out).eval()
    assert torch.equal(compare_logits("modernbert", ours, again)[1], expected)
    assert {key: getattr(again.config, key) for key in MODERN_SWITCHES} == MODERN_SWITCHES


@pytest.mark.parametrize(
    ("key", "value"), [("classifier_activation", "silu"), ("classifier_pooling", "max")]
)
def test_other_heads_of_modernbert_raise(key, value):
    importer = {each.name: each for each in default_registry().importers}["modernbert"]
    config = MODELS["modernbert"][1].to_dict() | {key: value}
    with pytest.raises(zoo.ZooError, match=f"'{key}' is \"{value}\"; supported values:"):
        importer.spec({**config, "architectures": ["ModernBertForSequenceClassification"]})


NOMIC = {
    "activation_function": "swiglu", "architectures": ["NomicBertModel"], "attn_pdrop": 0.0,
    "auto_map": {"AutoModel": "modeling_hf_nomic_bert.NomicBertModel"}, "causal": False,
    "dense_seq_output": True, "embd_pdrop": 0.0, "fused_bias_fc": True,
    "fused_dropout_add_ln": True, "initializer_range": 0.02, "layer_norm_epsilon": 1e-12,
    "max_trained_positions": 2048, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
    "model_type": "nomic_bert", "n_embd": 8, "n_head": 2, "n_inner": 256, "n_layer": 2,
    "n_positions": 8192, "pad_vocab_size_multiple": 64, "parallel_block": False,
    "parallel_block_tied_norm": False, "prenorm": False, "qkv_proj_bias": False,
    "reorder_and_upcast_attn": False, "resid_pdrop": 0.0, "rotary_emb_base": 1000,
    "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
    "rotary_scaling_factor": None, "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True, "summary_activation": None, "summary_first_dropout": 0.0,
    "summary_proj_to_labels": True, "summary_type": "cls_index", "summary_use_proj": True,
    "torch_dtype": "float32", "type_vocab_size": 2, "use_cache": True, "use_flash_attn": True,
    "use_rms_norm": False, "use_xentropy": True, "vocab_size": 31,
}  # fmt: skip
"""A small model with the keys of the published configs of NomicBERT."""


def test_a_published_config_of_nomic_bert_with_the_names_of_its_own_code(tmp_path):
    folder = tmp_path / "theirs"
    config = MODELS["nomic_bert"][1]
    theirs = head_model("NomicBertModel", config, intermediate_size=256, num_hidden_layers=2)
    theirs.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(NOMIC), encoding="utf-8")
    ours = import_and_load(folder, tmp_path)
    actual, expected = compare_logits("nomic_bert", ours, theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    again = hf.AutoModel.from_pretrained(out).eval()
    assert torch.equal(compare_logits("nomic_bert", ours, again)[1], expected)


@pytest.mark.parametrize("copied", [False, True])
def test_a_published_masked_lm_of_nomic_bert_has_other_names_and_no_biases(tmp_path, copied):
    folder = tmp_path / "theirs"
    changes = {"intermediate_size": 256, "num_hidden_layers": 2}
    theirs = head_model("NomicBertForMaskedLM", MODELS["nomic_bert"][1], **changes)
    head = theirs.cls.predictions
    head.bias.data.zero_()
    head.transform.dense.bias.data.zero_()
    theirs.save_pretrained(folder)
    tensors = {
        name.replace("nomic_bert.", "bert."): tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
        if name not in ("cls.predictions.bias", "cls.predictions.transform.dense.bias")
    }
    if copied:
        table = tensors["bert.embeddings.word_embeddings.weight"]
        tensors["cls.predictions.decoder.weight"] = table.clone()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = NOMIC | {"architectures": ["NomicBertForPreTraining"]}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")

    ours = import_and_load(folder, tmp_path)

    actual, expected = compare_logits("nomic_bert", ours, theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    again = hf.NomicBertForMaskedLM.from_pretrained(out).eval()
    assert torch.equal(compare_logits("nomic_bert", ours, again)[1], expected)


@pytest.mark.parametrize(
    ("key", "value"),
    [("rotary_scaling_factor", 2), ("prenorm", True), ("causal", True), ("n_heads", 3)],
)
def test_other_values_of_published_nomic_configs_raise(tmp_path, key, value):
    importer = {each.name: each for each in default_registry().importers}["nomic_bert"]
    with pytest.raises(zoo.ZooError, match=f"'{key}' is"):
        importer.spec({**NOMIC, key: value})
