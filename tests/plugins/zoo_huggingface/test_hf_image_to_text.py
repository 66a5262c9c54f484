"""Image files to texts: the tokens and texts of transformers."""

import json

import numpy as np
import pytest
import torch
import transformers as hf
from hf_model_kit import hf_model, import_and_load, suppressed_padding
from hf_models.vision import GPT2, OCR, SMALL
from tokenizers import Tokenizer, decoders, models

import zoo

Image = pytest.importorskip("PIL.Image")
PROCESSOR = {"image_processor_type": "ViTImageProcessor", "size": 8, "resample": 3}
MODELS = [
    *("vision-encoder-decoder", "vision-encoder-decoder-deit", "vision-encoder-decoder-gpt2"),
    "blip",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    pixels = np.random.default_rng(1).integers(0, 256, (5, 31, 17, 3), dtype=np.uint8)
    paths = [str(folder / f"{number}.png") for number in range(len(pixels))]
    for path, image in zip(paths, pixels, strict=True):
        Image.fromarray(image).save(path)
    return paths


def save_original(name, folder):
    """Save a model with an image processor and a tokenizer; return the model."""
    theirs = hf_model(name)
    theirs.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(31)}, unk_token="w0"))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.save(str(folder / "tokenizer.json"))
    return theirs


@pytest.mark.parametrize("name", MODELS)
def test_an_image_file_gives_the_text_of_transformers(name, files, tmp_path):
    theirs = save_original(name, tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    answers = zoo.generate(ours, files, max_length=10)
    processor = hf.ViTImageProcessorPil.from_pretrained(tmp_path / "theirs")
    pixels = processor(files, return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        options = suppressed_padding(theirs)
        rows = theirs.generate(pixels, max_new_tokens=10, do_sample=False, **options)
    rows = rows[:, 1:].tolist()
    expected = [row[: row.index(2)] if 2 in row else row for row in rows]
    assert [ranked[0].tokens for ranked in answers] == expected
    assert answers[0][0].text == " ".join(f"w{token}" for token in expected[0])


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ("encoder", {"model_type": "swin"}, "'encoder.model_type' is \"swin\"; supported values"),
        ("encoder", {"image_size": 9}, "'encoder.image_size' is 9; it should be a multiple"),
        ("decoder", {"num_groups": 2}, "'decoder.num_groups' is 2; the importer 'trocr' does not"),
        ("decoder", {"d_model": True}, "'decoder.d_model' is true; it should be an integer"),
        ("decoder", {"cross_attention_hidden_size": None}, "a projection of the encoder's 8"),
        ("decoder", {"cross_attention_hidden_size": 6}, "it should be 'encoder.hidden_size', 8"),
        ("decoder", {"pad_token_id": 2, "use_learned_position_embeddings": False}, "positions"),
    ],
)
def test_a_value_that_is_not_supported_is_named_with_its_part(part, changes, message, tmp_path):
    theirs = hf_model(MODELS[0])
    theirs.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "config.json"
    config = json.loads(file.read_text())
    config[part] |= changes
    file.write_text(json.dumps(config))
    with pytest.raises(zoo.ZooError, match=message):
        zoo.import_model(tmp_path / "theirs", tmp_path / "model.safetensors")


@pytest.mark.parametrize("decoder", [OCR, GPT2])
def test_special_tokens_of_the_decoder_are_used_if_the_model_has_none(decoder, tmp_path):
    config = hf.VisionEncoderDecoderConfig(
        encoder={**SMALL, "model_type": "vit"}, decoder=decoder | {"decoder_start_token_id": 4}
    )
    hf.VisionEncoderDecoderModel(config).save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "generation_config.json").unlink()
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    assert (ours.bos, ours.eos) == (4, 2)
