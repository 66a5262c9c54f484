"""Heads of speech encoders, feature extractors, and audio files, compared with transformers."""

import json
import wave

import numpy as np
import pytest
import torch
import transformers as hf
from hf_filter_bank_kit import features
from hf_head_kit import LABELS, head_model
from hf_model_kit import compare_logits, hf_model, import_and_load
from hf_models import MODELS
from hf_switch_kit import IMPORTERS

import zoo


def write_audio(path, samples):
    """Write a 16-bit WAV file; return the samples that it contains."""
    values = np.round(np.clip(samples, -1, 1) * 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(values.tobytes())
    return values.astype(np.float32) / 32768


@pytest.mark.parametrize("name", ["Wav2Vec2", "Hubert", "WavLM"])
def test_a_file_has_the_classes_of_the_pipeline(name, tmp_path):
    config = MODELS[name.lower()][1]
    theirs = head_model(f"{name}ForSequenceClassification", config, classifier_proj_size=6)
    folder = tmp_path / "theirs"
    theirs.save_pretrained(folder)
    hf.Wav2Vec2FeatureExtractor(return_attention_mask=False).save_pretrained(folder)
    ours = import_and_load(folder, tmp_path)
    samples = write_audio(tmp_path / "a.wav", 0.1 * np.random.default_rng(0).normal(size=300))

    (found,) = zoo.predict(ours, [tmp_path / "a.wav"], top_k=3)

    pipeline = hf.pipeline("audio-classification", model=str(folder), device="cpu")
    expected = pipeline({"raw": samples, "sampling_rate": 16000})
    assert [label for label, _ in found.top] == [each["label"] for each in expected]
    scores = [probability for _, probability in found.top]
    assert scores == pytest.approx([each["score"] for each in expected], abs=1e-5)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    assert hf.AutoConfig.from_pretrained(out).id2label == LABELS
    again = getattr(hf, f"{name}ForSequenceClassification").from_pretrained(out).eval()
    torch.testing.assert_close(*compare_logits(name.lower(), ours, again), atol=1e-5, rtol=0)


def test_pretrained_wav2vec2_gives_features(tmp_path):
    theirs = head_model("Wav2Vec2ForPreTraining", MODELS["wav2vec2"][1])
    theirs.save_pretrained(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    assert ours.name == "features"
    actual, expected = compare_logits("wav2vec2", ours, theirs.wav2vec2)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    assert hf.AutoModel.from_pretrained(out).__class__ is hf.Wav2Vec2Model


@pytest.mark.parametrize(
    "options", [{}, {"do_ceptral_normalize": False}, {"normalize_vars": False}]
)
def test_files_give_the_tokens_of_speech_to_text(options, tmp_path):
    theirs, folder = hf_model("speech_to_text"), tmp_path / "theirs"
    theirs.save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    mels = theirs.config.input_feat_per_channel
    hf.Speech2TextFeatureExtractor(feature_size=mels, num_mel_bins=mels, **options).save_pretrained(
        folder
    )
    ours = import_and_load(folder, tmp_path)
    samples = write_audio(tmp_path / "a.wav", 0.1 * np.random.default_rng(0).normal(size=3000))

    ((found,),) = zoo.generate(ours, [tmp_path / "a.wav"], max_length=9)

    waveform = torch.from_numpy(samples)
    if not options.get("do_ceptral_normalize", True):
        options = {**options, "normalize_means": False, "normalize_vars": False}
    with torch.no_grad():
        (row,) = theirs.generate(
            features(theirs, waveform, **options),
            max_new_tokens=9,
            do_sample=False,
            suppress_tokens=[theirs.config.pad_token_id],
        )[:, 1:].tolist()
    eos = theirs.config.eos_token_id
    assert found.tokens == (row[: row.index(eos)] if eos in row else row)
    zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")


@pytest.mark.parametrize(("key", "value"), [("dither", 1.0), ("sampling_rate", 8000), ("x", 1)])
def test_other_feature_extractors_raise(key, value, tmp_path):
    folder = tmp_path / "theirs"
    hf_model("speech_to_text").save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps({key: value}), encoding="utf-8")
    with pytest.raises(zoo.ZooError, match=f"'{key}' is {value}"):
        import_and_load(folder, tmp_path)


def test_buckets_of_published_wavlm_are_those_of_t5():
    config = MODELS["wavlm"][1].to_dict() | {"num_buckets": 320, "max_bucket_distance": 800}
    position = IMPORTERS["wavlm"].spec(config)["model"]["encoder"]["position"]
    assert position["position"] == {"type": "t5", "buckets": 320, "max_distance": 800}
