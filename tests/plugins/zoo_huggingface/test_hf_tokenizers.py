"""The tokenizer is imported, so that texts are processed as in transformers."""

import pytest
import torch
import transformers as hf
from hf_model_kit import hf_model, import_and_load
from hf_models import EOS
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import zoo

WORDS = ["<pad>", "<s>", "</s>", *(f"w{i}" for i in range(28))]
TEXTS = ["w4 w9 w1", "w20", "w0 w0 w7 w3 w3"]


def build_tokenizer(*, adds_bos):
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 1)]
        )
    return tokenizer


@pytest.mark.parametrize(("name", "adds_bos"), [("gpt2", False), ("llama", True), ("qwen2", False)])
def test_texts_are_continued_as_in_transformers(name, adds_bos, tmp_path):
    theirs, folder = hf_model(name), tmp_path / "theirs"
    theirs.save_pretrained(folder)
    build_tokenizer(adds_bos=adds_bos).save(str(folder / "tokenizer.json"))
    fast = hf.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    ours = import_and_load(folder, tmp_path)

    continuations = zoo.generate(ours, TEXTS, max_length=8)

    for text, (best,) in zip(TEXTS, continuations, strict=True):
        batch = fast(text, return_tensors="pt")
        with torch.no_grad():
            (row,) = theirs.generate(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"],
                max_new_tokens=8, do_sample=False, eos_token_id=EOS, pad_token_id=EOS,
            ).tolist()  # fmt: skip
        generated = row[batch["input_ids"].shape[1] :]
        assert best.tokens == (generated[: generated.index(EOS)] if EOS in generated else generated)
        assert best.text == fast.decode(best.tokens, skip_special_tokens=True)

    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    exported = hf.PreTrainedTokenizerFast.from_pretrained(out)
    assert exported(TEXTS)["input_ids"] == fast(TEXTS)["input_ids"]


def test_texts_of_a_sentencepiece_tokenizer_have_the_tokens_of_transformers(tmp_path):
    """The tokenizer of DeBERTa-v2: unigrams, with [CLS] and [SEP]."""
    pieces = [("[PAD]", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[UNK]", 0.0)]
    pieces += [
        (piece, -1.0 - i) for i, piece in enumerate(["\u2581", "\u2581the", "cat", "s", "on"])
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    theirs, folder = hf_model("deberta-v2-classifier"), tmp_path / "theirs"
    theirs.save_pretrained(folder)
    fast = hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]")
    fast.save_pretrained(folder)
    ours = import_and_load(folder, tmp_path)
    texts = ["the cats on", "on"]
    with torch.no_grad():
        logits = theirs(**fast(texts, return_tensors="pt", padding=True)).logits
    expected = logits.softmax(dim=-1)
    for prediction, row in zip(zoo.predict(ours, texts), expected, strict=True):
        assert prediction.probability == pytest.approx(row.max().item(), abs=1e-5)
        assert prediction.label == f"LABEL_{row.argmax().item()}"
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    assert hf.PreTrainedTokenizerFast.from_pretrained(out)(texts) == fast(texts)
