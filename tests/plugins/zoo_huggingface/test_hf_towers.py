"""Images and texts of imported models with two towers."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers as hf
from hf_model_kit import hf_model, import_and_load
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import zoo

WORDS = ["<pad>", "!", "<unk>", "<end>", "<start>", "a", "photo", "of", "cat", "dog"]
IMAGES = {
    "image_processor_type": "CLIPImageProcessor", "size": {"height": 8, "width": 8},
    "resample": 2, "do_center_crop": False, "image_mean": [0.5] * 3, "image_std": [0.25] * 3,
}  # fmt: skip
TEXTS = ["a photo of a cat", "a dog !", "cat " * 20]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    theirs = hf_model("clip")
    theirs.save_pretrained(folder / "theirs")
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<start> $A <end>", special_tokens=[("<start>", 4), ("<end>", 3)]
    )
    tokenizer.save(str(folder / "theirs" / "tokenizer.json"))
    (folder / "theirs" / "preprocessor_config.json").write_text(json.dumps(IMAGES))
    return import_and_load(folder / "theirs", folder), theirs, tokenizer


@torch.no_grad()
def test_vectors_of_texts_are_those_of_transformers(pair):
    ours, theirs, tokenizer = pair
    tokenizer.enable_truncation(10)
    vectors = zoo.embed(ours, TEXTS, side="target")
    for text, vector in zip(TEXTS, vectors, strict=True):
        ids = torch.tensor([tokenizer.encode(text).ids])
        expected = F.normalize(theirs.get_text_features(input_ids=ids).pooler_output[0], dim=0)
        torch.testing.assert_close(vector, expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_raw_images_and_texts_are_scored(pair):
    ours, theirs, tokenizer = pair
    pixels = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    scores = zoo.embed(ours, list(pixels)) @ zoo.embed(ours, TEXTS[:2], side="target").T
    images = (torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255 - 0.5) / 0.25
    tokenizer.enable_padding(pad_id=0)
    ids = torch.tensor([each.ids for each in tokenizer.encode_batch(TEXTS[:2])])
    tokenizer.no_padding()
    outputs = theirs(pixel_values=images, input_ids=ids)
    expected = outputs.image_embeds @ outputs.text_embeds.T
    torch.testing.assert_close(scores, expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", ["clip_vision_model", "clip_vision_model-bare"])
def test_an_image_file_has_the_vector_of_an_image_tower(name, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    theirs = hf_model(name)
    theirs.save_pretrained(tmp_path / "theirs")
    processor = hf.CLIPImageProcessorPil(size={"shortest_edge": 10}, crop_size=8)
    processor.save_pretrained(tmp_path / "theirs")
    pixels = np.random.default_rng(0).integers(0, 256, (21, 13, 3), dtype=np.uint8)
    file = str(tmp_path / "image.png")
    Image.fromarray(pixels).save(file)
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    outputs = theirs(**processor(file, return_tensors="pt"))
    expected = outputs.image_embeds if "bare" not in name else outputs.pooler_output
    torch.testing.assert_close(zoo.embed(ours, [file]), expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", ["clip_text_model", "clip_text_model-projected"])
def test_texts_have_the_vectors_of_a_text_tower(name, pair, tmp_path):
    tokenizer, theirs = pair[2], hf_model(name)
    tokenizer.enable_truncation(10)
    theirs.save_pretrained(tmp_path / "theirs")
    tokenizer.save(str(tmp_path / "theirs" / "tokenizer.json"))
    vectors = zoo.embed(import_and_load(tmp_path / "theirs", tmp_path), TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        outputs = theirs(input_ids=torch.tensor([tokenizer.encode(text).ids]))
        expected = outputs.text_embeds if "projected" in name else outputs.pooler_output
        torch.testing.assert_close(vector, expected[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("prefix", ["text_model.", ""])
def test_names_of_files_may_have_a_prefix(prefix, tmp_path):
    theirs = hf_model("clip_text_model")
    theirs.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.safetensors"
    weights = {f"{prefix}{key}": tensor for key, tensor in load_file(file).items()}
    save_file(weights, file)
    zoo.import_model(tmp_path / "theirs", tmp_path / "a.safetensors")
    folder = zoo.export_model(tmp_path / "a.safetensors", tmp_path / "exported")
    exported = load_file(folder / "model.safetensors")
    assert exported.keys() == weights.keys()
    assert all(torch.equal(exported[key], weights[key]) for key in weights)


def test_without_a_preprocessor_the_message_names_the_side(tmp_path):
    hf_model("siglip").save_pretrained(tmp_path / "theirs")
    model = import_and_load(tmp_path / "theirs", tmp_path)
    with pytest.raises(zoo.ZooError, match="has no preprocessor for 'target'"):
        zoo.embed(model, TEXTS, side="target")
