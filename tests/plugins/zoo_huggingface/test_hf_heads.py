"""Classifiers and taggers: labels, probabilities of pipelines, and what is rejected."""

import json

import pytest
import torch
import transformers as hf
from hf_head_kit import LABELS, fast_tokenizer, head_model
from hf_model_kit import MODELS, import_and_load
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app

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
        ({"problem_type": "regression"}, "'problem_type' is \"regression\"; regression is not"),
        ({"problem_type": "ranking"}, "'problem_type' is \"ranking\"; it is not known"),
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
