"""Tokenizer files, copies of biases and sentence-transformers folders, as in published models."""

import json

import pytest
import torch
import transformers as hf
from hf_model_kit import hf_model, import_and_load, padded_batch
from hf_models import MODELS
from safetensors.torch import load_file, save_file
from test_hf_sentences import POOLINGS, write_modules
from tokenizers import Tokenizer, models

import zoo

TOKENS = ["<s>", "<pad>", "</s>", *(f"w{i}" for i in range(28))]


def write_tokenizer(folder, style):
    """Write a tokenizer with the special tokens of XLM-R: <s> is 0, <pad> is 1."""
    if style == "unigram":
        tokenizer = Tokenizer(models.Unigram([(token, 0.0) for token in TOKENS], unk_id=0))
    else:
        vocabulary = {token: i for i, token in enumerate(TOKENS)}
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<s>"))
    if style == "added":
        tokenizer.add_special_tokens(TOKENS[:3])
    tokenizer.save(str(folder / "tokenizer.json"))
    pad = {"content": "<pad>", "lstrip": False} if style == "added" else "<pad>"
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": pad}))


@pytest.fixture
def sentence_folder(tmp_path):
    """Saves a BERT of sentence-transformers; its config has padding 0."""
    torch.manual_seed(0)
    folder = tmp_path / "theirs"
    hf.BertModel(MODELS["bert"][1]).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("mode", ["mean", "cls"])
@pytest.mark.parametrize("style", ["vocab", "unigram", "added"])
def test_the_padding_of_the_tokenizer_is_masked(sentence_folder, tmp_path, mode, style):
    folder = sentence_folder
    write_modules(folder, {"pooling_mode": mode})
    write_tokenizer(folder, style)
    tokens, mask = padded_batch(pad=1)
    tokens[:, 0] = 0  # <s>
    theirs = hf.AutoModel.from_pretrained(folder).eval()
    ours = import_and_load(folder, tmp_path)
    with torch.no_grad():
        states = theirs(input_ids=tokens, attention_mask=mask).last_hidden_state
        expected = torch.nn.functional.normalize(POOLINGS[mode](states, mask), dim=-1)
        torch.testing.assert_close(ours.embed({"source": tokens}), expected, atol=1e-5, rtol=0)


def test_a_different_padding_of_the_tokenizer_is_rejected_where_positions_need_it(tmp_path):
    folder = tmp_path / "theirs"
    hf_model("roberta").save_pretrained(folder)
    added = {"added_tokens_decoder": {"3": {"content": "[PAD]"}}, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(added))
    with pytest.raises(zoo.ZooError, match=r"'pad_token_id' is 1; .*tokenizer is 3"):
        import_and_load(folder, tmp_path)


def test_a_tokenizer_without_padding_overrides_that_of_a_language_model(tmp_path):
    folder = tmp_path / "theirs"
    hf_model("llama-biased").save_pretrained(folder)
    assert import_and_load(folder, tmp_path).embedding.padding == 0
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": None}))
    assert import_and_load(folder, tmp_path).embedding.padding is None


BIASES = {
    "bert": ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    "roberta": ("lm_head.decoder.bias", "lm_head.bias"),
}


@pytest.mark.parametrize("name", BIASES)
def test_a_copy_of_the_output_bias_must_be_equal(name, tmp_path):
    copy, bias = BIASES[name]
    folder = tmp_path / "theirs"
    hf_model(name).save_pretrained(folder)
    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file(tensors | {copy: tensors[bias].clone()}, file, {"format": "pt"})
    import_and_load(folder, tmp_path)
    save_file(tensors | {copy: tensors[bias] + 1}, file, {"format": "pt"})
    with pytest.raises(zoo.ZooError, match=f"'{copy}' differs from '{bias}'"):
        import_and_load(folder, tmp_path)


@pytest.mark.parametrize("name", ["gpt2", "olmo2", "t5", "vit"])
def test_sentence_encoders_of_other_models_are_rejected(name, tmp_path):
    folder = tmp_path / "theirs"
    hf_model(name).save_pretrained(folder)
    write_modules(folder, {"pooling_mode": "lasttoken"})
    with pytest.raises(zoo.ZooError, match=rf"modules\.json: .*'{name}' does not support"):
        import_and_load(folder, tmp_path)


def test_images_of_another_size_raise_as_in_transformers(tmp_path):
    theirs = hf_model("vit")
    theirs.save_pretrained(tmp_path / "theirs")
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    for shape in [(1, 3, 4, 4), (1, 3, 4, 16)]:  # fewer patches, and as many
        images = torch.zeros(shape)
        with pytest.raises(ValueError, match="image size"):
            theirs(pixel_values=images)
        with pytest.raises(zoo.ZooError, match="expects 8 x 8"):
            ours({"source": images, "target": torch.zeros(1, dtype=torch.long)})
