"""Causal language models without their output layer: features and sentence encoders."""

import importlib
import json

import pytest
import torch
import transformers as hf
from hf_head_kit import WORDS, head_model
from hf_model_kit import import_and_load
from hf_models import MODELS
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import zoo

ATOL = 1e-5
TEXTS = ["the cat sat on the mat the cats", "cat", "", "mats on", "sat sat the cat"]
END = "[SEP]"


def end_tokenizer(*, pad=END):
    """Return a tokenizer that adds the end token, which also pads texts on the left."""
    tokenizer = Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, WORDS.index(END))]
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        eos_token=END,
        unk_token="[UNK]",
        padding_side="left",
    )


def make_folder(folder, *, pad=END, dense=False):
    """Save a Qwen3 as a sentence encoder with the library itself, and return it."""
    library = pytest.importorskip("sentence_transformers")
    modules = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    base = folder / "base"
    head_model("Qwen3Model", MODELS["qwen3"][1]).save_pretrained(base)
    end_tokenizer(pad=pad).save_pretrained(base)
    parts = [
        modules.Transformer(str(base), max_seq_length=6),
        modules.Pooling(16, pooling_mode="lasttoken"),
        *([modules.Dense(16, 5, activation_function=torch.nn.Tanh())] if dense else []),
        modules.Normalize(),
    ]
    encoder = library.SentenceTransformer(modules=parts, device="cpu")
    encoder.save(str(folder / "theirs"))
    file = folder / "theirs" / "config.json"
    config = json.loads(file.read_text())  # as Qwen3-Embedding is published
    file.write_text(json.dumps({**config, "architectures": ["Qwen3ForCausalLM"]}))
    return encoder


@pytest.mark.parametrize(("pad", "dense"), [(END, False), ("[PAD]", True)])
def test_raw_texts_have_the_vectors_of_the_library(tmp_path, pad, dense):
    theirs = make_folder(tmp_path, pad=pad, dense=dense)
    expected = theirs.encode(TEXTS, convert_to_tensor=True)
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    assert ours.source.padding == WORDS.index(pad)
    assert ours.source.padding_ends == (pad == END)

    for size in (5, 2, 1):
        vectors = zoo.embed(ours, TEXTS, batch_size=size)
        torch.testing.assert_close(vectors, expected, atol=ATOL, rtol=0)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    again = type(theirs)(str(out), device="cpu").encode(TEXTS, convert_to_tensor=True)
    torch.testing.assert_close(again, expected, atol=ATOL, rtol=0)
    (tmp_path / "again").mkdir()
    assert import_and_load(out, tmp_path / "again").spec == ours.spec


def test_texts_that_padding_ends_can_be_trained(tmp_path):
    make_folder(tmp_path)
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    end = ours.source.padding
    rows = [[5, 6, end, end], [7, 5, 9, end]]
    batch = {"source": torch.tensor(rows), "target": torch.tensor(rows)[:, [1, 0, 2, 3]]}
    both = ours(batch).extras["source_vectors"]
    short = ours({key: tokens[:1, :3] for key, tokens in batch.items()})
    torch.testing.assert_close(both[:1], short.extras["source_vectors"])
    ours(batch).logits.sum().backward()
    assert torch.count_nonzero(ours.source.table.weight.grad[end])


def test_a_language_model_with_the_names_of_a_bare_one_gives_features(tmp_path):
    theirs = head_model("LlamaForCausalLM", MODELS["llama"][1])
    theirs.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "config.json"
    config = json.loads(file.read_text()) | {"architectures": ["LlamaModel"], "eos_token_id": None}
    file.write_text(json.dumps(config))
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    assert ours.name == "features"
    tokens, mask = torch.tensor([[3, 4, 5], [6, 7, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]]).bool()
    states = ours({"source": tokens, "mask": mask}).logits
    expected = theirs.model(input_ids=tokens, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(states[mask], expected[mask], atol=ATOL, rtol=0)


def test_names_of_published_files_have_no_prefix(tmp_path):
    make_folder(tmp_path)
    file = tmp_path / "theirs" / "model.safetensors"
    tensors = load_file(file)
    bare = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    vectors = []
    for number, named in enumerate((bare, {f"model.{name}": t for name, t in bare.items()})):
        save_file(named, file, {"format": "pt"})
        (tmp_path / str(number)).mkdir()
        ours = import_and_load(tmp_path / "theirs", tmp_path / str(number))
        vectors.append(zoo.embed(ours, TEXTS))
    assert torch.equal(*vectors)


@pytest.mark.parametrize("name", ["olmo2", "gpt2"])
def test_a_sentence_encoder_of_another_language_model_raises(tmp_path, name):
    head_model(MODELS[name][0].__name__, MODELS[name][1]).save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "modules.json").write_text("[]")
    with pytest.raises(zoo.ZooError, match=rf"modules.json: .* importer '{name}' does not support"):
        import_and_load(tmp_path / "theirs", tmp_path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"causal": False}, r"model\.encoder\.causal is not true, which qwen3 needs"),
        ({"share_layers": True}, r"model\.encoder\.share_layers is true, but not in qwen3"),
        ({"dim": 8}, r"model\.encoder\.dim differs"),
    ],
)
def test_an_export_of_another_encoder_raises(tmp_path, changes, reason):
    head_model("Qwen3Model", MODELS["qwen3"][1]).save_pretrained(tmp_path / "theirs")
    spec = json.loads(json.dumps(import_and_load(tmp_path / "theirs", tmp_path).spec))
    spec["model"]["encoder"] |= changes
    file = zoo.save(zoo.compose(spec), tmp_path / "changed.safetensors")
    with pytest.raises(zoo.ZooError, match=reason):
        zoo.export_model(file, tmp_path / "out", to="qwen3")
