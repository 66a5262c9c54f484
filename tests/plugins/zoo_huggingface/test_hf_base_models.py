"""Published bases of images and speech: class names, characters, and bases without a head."""

import json

import pytest
import torch
import transformers as hf
from hf_model_kit import import_and_load, randomize
from hf_models import MODELS

import zoo

VOCAB = {token: i for i, token in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", *"ABCDE'"])}
NAMES = ["crane", "cat", "crane"]


def recogniser(folder, **config):
    """Save a recogniser with the characters of VOCAB; return the tokenizer of transformers."""
    cls, settings = MODELS["wav2vec2"]
    settings = hf.Wav2Vec2Config.from_dict(settings.to_dict() | {"pad_token_id": 0})
    randomize("wav2vec2", cls(settings)).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps(VOCAB), encoding="utf-8")
    tokenizer = hf.Wav2Vec2CTCTokenizer(folder / "vocab.json", **config)
    tokenizer.save_pretrained(folder)
    (folder / "added_tokens.json").unlink(missing_ok=True)
    return tokenizer


def test_characters_of_a_recogniser_are_those_of_transformers(tmp_path):
    theirs = recogniser(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    tokenizer = zoo.data.tokenizer.Tokenizer(ours.tokenizer["target"])
    for text in ("A BAD CAB", "DAD'S", "A ZED", "E"):
        assert tokenizer.encode([text]) == [theirs(text)["input_ids"]]
    for ids in ([5, 4, 6], [4, 5, 0, 5, 4, 4, 7, 4], [4], []):
        assert tokenizer.decode(ids) == theirs.decode(ids, group_tokens=False)


def test_a_recogniser_generates_text_and_reads_audio_of_other_rates(tmp_path):
    theirs = recogniser(tmp_path / "theirs")
    hf.Wav2Vec2FeatureExtractor(return_attention_mask=False).save_pretrained(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    audio = torch.randn(400, generator=torch.Generator().manual_seed(0)).numpy()
    model = hf.Wav2Vec2ForCTC.from_pretrained(tmp_path / "theirs").eval()
    extractor = hf.Wav2Vec2FeatureExtractor()
    with torch.no_grad():
        values = extractor(audio, sampling_rate=16000, return_tensors="pt").input_values
        expected = theirs.decode(model(values).logits[0].argmax(-1))
    for token in theirs.all_special_tokens:
        expected = expected.replace(token, "")
    ((answer,), *_) = zoo.generate(ours, [(audio, 16000), (audio, 8000)])
    assert answer.text == expected.strip()


def test_characters_that_become_upper_case_are_reported(tmp_path):
    recogniser(tmp_path / "theirs", do_lower_case=True)
    with pytest.warns(zoo.ZooWarning, match="do_lower_case.*without a tokenizer"):
        ours = import_and_load(tmp_path / "theirs", tmp_path)
    assert not ours.tokenizer


def test_a_pretrained_model_is_imported_without_its_quantizer(tmp_path):
    settings = {**MODELS["wav2vec2"][1].to_dict(), "codevector_dim": 4, "proj_codevector_dim": 4}
    config = hf.Wav2Vec2Config.from_dict({**settings, "num_codevectors_per_group": 2})
    theirs = randomize("wav2vec2", hf.Wav2Vec2ForPreTraining(config))
    theirs.save_pretrained(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    audio = torch.randn(2, 60, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = theirs.wav2vec2(audio).last_hidden_state
        torch.testing.assert_close(ours({"source": audio}).logits, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["vit", "dinov2"])
def test_images_have_the_names_of_their_classes(tmp_path, name):
    cls, settings = MODELS[name]
    labels = dict(enumerate(NAMES))
    config = type(settings).from_dict(settings.to_dict() | {"id2label": labels})
    theirs = randomize(name, cls(config))
    theirs.save_pretrained(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    assert ours.spec["preprocessing"]["target"]["classes"] == ["crane", "cat", "crane (2)"]
    assert ours.spec["metrics"] == [{"type": "metrics:accuracy"}]
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    assert hf.AutoConfig.from_pretrained(out).id2label == labels


def test_a_classifier_starts_from_a_base_without_a_head(tmp_path):
    cls, settings = MODELS["vit-features"]
    randomize("vit", cls(settings)).save_pretrained(tmp_path / "theirs")
    base = zoo.import_model(tmp_path / "theirs", tmp_path / "base.safetensors")
    spec = dict(zoo.load(base).spec)
    parts = {key: spec["model"][key] for key in ("source", "encoder")}
    spec["model"] = {"type": "classifier", "classes": 2, **parts}
    model = zoo.compose({**spec, "objective": "cross-entropy"})
    assert zoo.start_from(model, base)[1] == "taken: source, encoder (38 tensors)"
    state = zoo.load(base).state_dict()
    taken = {key: value for key, value in state.items() if not key.startswith("pooler.")}
    assert len(taken) == 38
    assert all(torch.equal(model.state_dict()[key], value) for key, value in taken.items())
