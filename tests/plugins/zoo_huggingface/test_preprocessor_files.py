"""Raw images and audio have the outputs of transformers: their preprocessing is imported."""

import json

import numpy as np
import pytest
import torch
import transformers as hf
from hf_model_kit import hf_model

import zoo
from zoo.data.preprocessing import build_preprocessors
from zoo_huggingface.image_processors import image_spec
from zoo_huggingface.preprocessor_files import read_preprocessor

PROCESSOR = {
    "do_resize": True, "size": {"height": 8, "width": 8}, "resample": 2, "do_rescale": True,
    "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.3, 0.5], "image_processor_type": "ViTImageProcessor",
}  # fmt: skip


def import_with(name, config, tmp_path):
    hf_model(name).save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "preprocessor_config.json").write_text(json.dumps(config))
    return zoo.load(zoo.import_model(tmp_path / "theirs", tmp_path / "model.safetensors"))


CROP = {"do_center_crop": True, "crop_size": {"height": 8, "width": 8}}
PROCESSORS = {
    "ViT": ("vit", PROCESSOR),
    "ViT lanczos": ("vit", PROCESSOR | {"resample": 1}),
    "ViT nearest": ("vit", PROCESSOR | {"resample": 0, "rescale_factor": 1 / 127.5}),
    "ViT of one size": ("vit", PROCESSOR | {"do_pad": True, "size_divisor": 32}),
    "ViT not rescaled": ("vit", PROCESSOR | {"do_rescale": False}),
    "ViT not normalised": ("vit", PROCESSOR | {"do_normalize": False, "rescale_factor": 0.1}),
    "DeiT": ("deit", {"size": 11, "crop_size": 8}),
    "DeiT padded": ("deit", CROP | {"size": {"height": 7, "width": 5}}),
    "CLIP": ("clip", {"size": 8, "crop_size": 8}),
    "CLIP larger": ("clip", CROP | {"size": {"shortest_edge": 10}, "resample": 2}),
    "Siglip": ("siglip", {"size": {"height": 8, "width": 8}}),
    "Bit": ("dinov2", CROP | {"size": {"shortest_edge": 9}}),
}
"""Importer and image processor of transformers, whose class is the first word."""


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Return files of several formats, modes and aspect ratios."""
    Image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("images")
    pixels = np.random.default_rng(0).integers(0, 256, (37, 23, 4), dtype=np.uint8)
    smooth = np.linspace(0, 255, 61 * 90 * 3).reshape(61, 90, 3).astype(np.uint8)
    upright = Image.Exif()
    upright[0x0112] = 6  # turned by 90 degrees
    saved = {
        "rgb.png": (Image.fromarray(pixels[..., :3]), {}),
        "rgba.png": (Image.fromarray(pixels), {}),
        "grey.png": (Image.fromarray(pixels[..., 0]), {}),
        "palette.png": (Image.fromarray(pixels[..., :3]).quantize(16), {}),
        "photo.jpg": (Image.fromarray(smooth), {"exif": upright}),
    }
    for name, (image, options) in saved.items():
        image.save(folder / name, **options)
    return [folder / name for name in saved]


@pytest.mark.parametrize("case", PROCESSORS)
def test_image_files_have_the_pixels_of_transformers(case, images, tmp_path):
    name, config = PROCESSORS[case]
    kind = case.split()[0]
    config = {**config, "image_processor_type": f"{kind}ImageProcessor"}
    encoder = import_with(name, config, tmp_path)
    processor = getattr(hf, f"{kind}ImageProcessorPil").from_pretrained(tmp_path / "theirs")
    preprocessor = build_preprocessors(encoder)["source"]
    for file in images:
        expected = processor(str(file), return_tensors="np")["pixel_values"][0]
        actual = preprocessor.encode(preprocessor.read(file))
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-5, err_msg=file.name)


@pytest.mark.parametrize("kind", ["ViT", "DeiT", "CLIP", "Siglip", "Bit", "Beit", "Blip"])
def test_missing_keys_have_the_defaults_of_the_image_processor(kind):
    theirs = json.loads(getattr(hf, f"{kind}ImageProcessorPil")().to_json_string())
    written = {key: value for key, value in theirs.items() if key != "image_processor_type"}
    expected = image_spec(dict(written), kind, "file")
    assert image_spec({}, f"{kind}FeatureExtractor", "file") == expected


def test_images_of_another_size_than_the_model_takes_are_reported(tmp_path):
    config = {"image_processor_type": "BitImageProcessor", "crop_size": 4, "size": 6}
    message = "images have the size .4, 4., but the model has positions for 8, .*scale_to=8"
    with pytest.warns(zoo.ZooWarning, match=message):
        import_with("dinov2", config, tmp_path)


def test_the_image_processor_of_a_combined_file_is_read(tmp_path):
    content = {"image_processor": PROCESSOR, "processor_class": "TrOCRProcessor"}
    (tmp_path / "processor_config.json").write_text(json.dumps(content))
    found = read_preprocessor(tmp_path, "image")["preprocessor"]
    assert found["resample"] == "bilinear"
    assert found["size"] == [8, 8]


def test_an_image_file_has_the_class_of_transformers(tmp_path, images):
    ours = import_with("vit", PROCESSOR, tmp_path)
    processor = hf.ViTImageProcessorPil.from_pretrained(tmp_path / "theirs")
    pixels = processor(str(images[0]), return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        logits = hf_model("vit").eval()(pixel_values=pixels).logits[0]
    (found,) = zoo.predict(ours, [str(images[0])])
    assert found.probability == pytest.approx(logits.softmax(-1).max().item(), abs=1e-5)


def test_the_torchvision_backend_differs_by_one_of_255_at_most(tmp_path, images):
    pytest.importorskip("torchvision")
    ours = import_with("vit", PROCESSOR, tmp_path)
    processor = hf.ViTImageProcessor.from_pretrained(tmp_path / "theirs")
    preprocessor = build_preprocessors(ours)["source"]
    actual = preprocessor.encode(preprocessor.read(images[0]))
    expected = processor(str(images[0]), return_tensors="np")["pixel_values"][0]
    assert np.abs(actual - expected).max() <= 1.01 / 255 / 0.2


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
        ("resample", 9), ("size", {"shortest_edge": 8}), ("size", {"longest_edge": 8}),
        ("size", [8]), ("rescale_factor", -1), ("rescale_factor", True), ("image_mean", "x"),
        ("image_std", [1, 0, 1]), ("do_something", True), ("do_pad", True), ("crop_size", 0),
        ("image_processor_type", "OtherImageProcessor"),
    ],
)  # fmt: skip
def test_a_key_that_is_not_supported_is_named(tmp_path, key, value):
    changes = {key: value, "do_center_crop": key == "crop_size"}
    changes |= {"pad_size": {"height": 9, "width": 9}} if key == "do_pad" else {}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(PROCESSOR | changes))
    with pytest.warns(zoo.ZooWarning, match=f"'{key}' is .*imported without a preprocessor"):
        assert read_preprocessor(tmp_path, "image") == {}


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
