"""Raw images and audio have the outputs of transformers: their preprocessing is imported."""

import json

import numpy as np
import pytest
import torch
import transformers as hf
from hf_model_kit import hf_model

import zoo
from zoo.data.preprocessing import build_preprocessors

PROCESSOR = {
    "do_resize": True, "size": {"height": 8, "width": 8}, "resample": 2, "do_rescale": True,
    "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.3, 0.5], "image_processor_type": "ViTImageProcessor",
}  # fmt: skip


def import_with(name, config, tmp_path):
    hf_model(name).save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "preprocessor_config.json").write_text(json.dumps(config))
    return zoo.load(zoo.import_model(tmp_path / "theirs", tmp_path / "model.safetensors"))


def test_an_uneven_image_has_the_pixels_and_classes_of_transformers(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    ours = import_with("vit", PROCESSOR, tmp_path)
    pixels = np.random.default_rng(0).integers(0, 256, (37, 23, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image.png")
    processor = hf.ViTImageProcessor.from_pretrained(tmp_path / "theirs")
    expected = processor(Image.fromarray(pixels), return_tensors="pt")["pixel_values"][0]
    actual = torch.from_numpy(build_preprocessors(ours)["source"].encode(pixels))
    # Pillow and torchvision round a resized pixel differently, by one of 255 at most.
    assert (actual - expected).abs().max() <= 1.01 / 255 / 0.2
    with torch.no_grad():
        logits = hf_model("vit").eval()(pixel_values=actual[None]).logits[0]
    (found,) = zoo.predict(ours, [str(tmp_path / "image.png")])
    assert found.probability == pytest.approx(logits.softmax(-1).max().item(), abs=1e-5)


@pytest.mark.parametrize("normalise", [True, False])
def test_audio_is_normalised_as_in_transformers(tmp_path, normalise):
    config = {
        "feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": 8000,
        "do_normalize": normalise, "feature_size": 1, "padding_side": "right",
        "padding_value": 0.0, "return_attention_mask": False,
    }  # fmt: skip
    ours = import_with("wav2vec2", config, tmp_path)
    samples = np.random.default_rng(0).normal(0.3, 0.1, 400).astype(np.float32)
    extractor = hf.Wav2Vec2FeatureExtractor.from_pretrained(tmp_path / "theirs")
    expected = extractor(samples, sampling_rate=8000, return_tensors="np")["input_values"][0]
    actual = build_preprocessors(ours)["source"].encode((samples, 8000))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("resample", 3), ("size", {"shortest_edge": 8}), ("rescale_factor", 0.1),
        ("do_center_crop", True), ("do_something", True), ("do_rescale", False),
    ],
)  # fmt: skip
def test_a_key_that_is_not_supported_is_named(tmp_path, key, value):
    name = "rescale_factor" if key == "do_rescale" else key
    with pytest.warns(zoo.ZooWarning, match=f"'{name}' is .*imported without a preprocessor"):
        model = import_with("vit", {**PROCESSOR, key: value}, tmp_path)
    assert "source" not in model.spec["preprocessing"]


@pytest.mark.parametrize("size", [8, [8, 8]])
def test_the_preprocessor_is_exported(tmp_path, size):
    source = {"type": "image", "size": size, "mean": 0.25, "std": [0.2, 0.3, 0.5]}
    spec = {**import_with("vit", PROCESSOR, tmp_path).spec, "preprocessing": {"source": source}}
    model = zoo.compose(spec)
    folder = zoo.export_model(
        zoo.save(model, tmp_path / "a.safetensors"), tmp_path / "out", to="vit"
    )
    processor = hf.ViTImageProcessor.from_pretrained(folder)
    pixels = np.random.default_rng(0).integers(0, 256, (37, 23, 3), dtype=np.uint8)
    expected = processor(pixels, return_tensors="np")["pixel_values"][0]
    actual = build_preprocessors(model)["source"].encode(pixels)
    assert np.abs(actual - expected).max() <= 1.01 / 255 / 0.2
    audio = {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": 8000}
    (tmp_path / "audio").mkdir()
    import_with("wav2vec2", {**audio, "do_normalize": False}, tmp_path / "audio")
    folder = zoo.export_model(tmp_path / "audio" / "model.safetensors", tmp_path / "audio" / "out")
    extractor = hf.AutoFeatureExtractor.from_pretrained(folder)
    assert (extractor.sampling_rate, extractor.do_normalize) == (8000, False)


def test_a_resize_that_transformers_does_not_compute_is_not_exported(tmp_path):
    source = {"type": "image", "size": 8, "resize": "crop"}
    spec = {**import_with("vit", PROCESSOR, tmp_path).spec, "preprocessing": {"source": source}}
    file = zoo.save(zoo.compose(spec), tmp_path / "a.safetensors")
    folder = zoo.export_model(file, tmp_path / "out", to="vit")
    assert not (folder / "preprocessor_config.json").exists()
