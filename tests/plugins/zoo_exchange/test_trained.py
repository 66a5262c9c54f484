"""Published models, imported with a map, give the outputs of their own implementations."""

import re
import shutil

import numpy
import pytest
import torch
from pretrained_kit import ATOL, ROOT, load_reference
from safetensors.torch import load_file

import zoo
from zoo.data.tokenizer import Tokenizer


def _import_and_load(folder, tmp_path_factory, spec, map):
    path = tmp_path_factory.mktemp("in") / "model.safetensors"
    zoo.import_model(folder / "model.safetensors", path, spec=spec, map=map)
    return zoo.load(path).eval()


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    folder, reference, arrays = load_reference("llama2c-stories260K")
    return _import_and_load(folder, tmp_path_factory, "stories260k", "llama2c"), reference, arrays


def test_stories_logits(stories):
    model, reference, arrays = stories
    for index, example in enumerate(reference["examples"]):
        tokens = torch.tensor([[*example["ids"], 2]])
        logits = model({"target": tokens}).logits[0]
        expected = torch.from_numpy(arrays[f"logits_{index}"])
        torch.testing.assert_close(logits, expected, atol=ATOL, rtol=0)


def test_stories_greedy_continuation_of_64_tokens(stories):
    model, reference, _ = stories
    for example in reference["examples"]:
        prompt = example["ids"][1:]  # the model prepends the start token
        (ranked,) = zoo.generate(model, [prompt], sampler="greedy", max_length=64)
        assert ranked[0].tokens == example["greedy_ids"][len(example["ids"]) :]


def test_stories_text_with_the_converted_tokenizer(tmp_path, monkeypatch):
    folder, reference, _ = load_reference("llama2c-stories260K")
    shutil.copy(folder / "tokenizer.json", tmp_path / "llama2c.json")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "maps.md").read_text(encoding="utf-8")
    (converter,) = (
        block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "llama2c" in block
    )
    exec(converter, {})
    path = zoo.import_model(
        folder / "model.safetensors", "m.safetensors",
        spec="stories260k", map="llama2c", tokenizer="tokenizer.json",
    )  # fmt: skip
    model = zoo.load(path).eval()
    tokenizer = Tokenizer(model.tokenizer["source"])
    for example in reference["examples"]:
        assert tokenizer.encode([example["prompt"]]) == [example["ids"]]
        ((best,),) = zoo.generate(model, [example["prompt"]], sampler="greedy", max_length=64)
        text = tokenizer.decode([*example["ids"], *best.tokens])
        assert text + "\n" == example["run_c_text"]


@pytest.fixture(scope="module")
def g2p(tmp_path_factory):
    folder, reference, arrays = load_reference("g2p-en-gru")
    return _import_and_load(folder, tmp_path_factory, "g2p-en", "g2p-en"), reference, arrays


def test_g2p_encoder_states_and_logits(g2p):
    model, reference, arrays = g2p
    for index, example in enumerate(reference["examples"]):
        target = [2, *example["argmax_ids"]]
        source = torch.tensor([example["grapheme_ids"]])
        states = model.encode(source).states[0]
        logits = model({"source": source, "target": torch.tensor([target])}).logits[0]
        for ours, theirs in ((states, "enc_h"), (logits, "logits")):
            expected = torch.from_numpy(arrays[f"{theirs}_{index}"])
            torch.testing.assert_close(ours, expected, atol=ATOL, rtol=0)


def test_g2p_phonemes(g2p):
    model, reference, _ = g2p
    words = [example["grapheme_ids"] for example in reference["examples"]]
    phonemes = [
        [reference["phonemes"][token] for token in ranked[0].tokens]
        for ranked in zoo.generate(model, words, sampler="greedy", max_length=20)
    ]
    assert len(phonemes) == 12
    assert phonemes == [example["phonemes"] for example in reference["examples"]]


@pytest.fixture(scope="module")
def cora(tmp_path_factory):
    """The model, a batch with the graph of Cora, the test mask and the reference outputs."""
    folder, reference, arrays = load_reference("gat-cora-petarv")
    model = _import_and_load(folder, tmp_path_factory, "gat-cora", "gat-cora")
    read = numpy.load(folder / "input.npz")
    nodes, width = read["x_shape"]
    features = torch.zeros(int(nodes), int(width))
    rows = numpy.repeat(numpy.arange(nodes), numpy.diff(read["x_indptr"]))
    features[rows, read["x_indices"]] = torch.from_numpy(read["x_data"])
    edges = torch.from_numpy(numpy.stack([read["edge_col"], read["edge_row"]], axis=-1)).long()
    labels = torch.from_numpy(read["labels"])
    batch = {"features": features[None], "edges": edges[None], "target": labels[None]}
    return model, batch, torch.from_numpy(read["test_mask"]), reference, arrays


@torch.no_grad()
def test_cora_logits_and_accuracy(cora):
    model, batch, test_mask, reference, arrays = cora
    logits = model(batch).logits[0]
    expected = torch.from_numpy(arrays["logits"])
    torch.testing.assert_close(logits, expected, atol=ATOL, rtol=0)
    predicted = logits.argmax(dim=-1)
    assert torch.equal(predicted, expected.argmax(dim=-1))
    accuracy = (predicted == batch["target"][0])[test_mask].double().mean().item()
    assert round(accuracy, 3) == reference["test_accuracy"]


@torch.no_grad()
def test_cora_attention_weights(cora):
    model, batch, _, _, arrays = cora
    with zoo.recording(model) as recorded:
        model(batch)
    nodes = batch["features"].shape[1]
    loops = torch.arange(nodes)[:, None].expand(nodes, 2)
    source, target = torch.cat([batch["edges"][0], loops]).T
    rows, columns = (torch.from_numpy(arrays[key]).long() for key in ("att_rows", "att_cols"))
    for layer, theirs in ((0, "att_layer1_head0"), (1, "att_out_head0")):
        (weights,) = recorded[f"encoder.layers.{layer}"]
        ours = torch.zeros(nodes, nodes)
        ours[target, source] = weights[0, 0]
        expected = torch.from_numpy(arrays[theirs])
        torch.testing.assert_close(ours[rows, columns], expected, atol=ATOL, rtol=0)


@pytest.fixture(scope="module")
def ocr(tmp_path_factory):
    folder, reference, arrays = load_reference("nano-ocr-crnn")
    model = _import_and_load(folder, tmp_path_factory, "nano-ocr", "nano-ocr")
    pixels = [arrays[f"pixels_{i}"] for i in range(len(reference["examples"]))]
    images = (torch.from_numpy(numpy.stack(pixels)).float() / 255 - 0.5) / 0.5
    return model, images, reference, arrays


@torch.no_grad()
def test_ocr_features_and_logits(ocr):
    model, images, reference, arrays = ocr
    features, logits = model.source(images), model.frame_logits(images)[0]
    for index in range(len(reference["examples"])):
        for ours, theirs in ((features[index].T, "conv"), (logits[index], "logits")):
            expected = torch.from_numpy(arrays[f"{theirs}_{index}"])
            torch.testing.assert_close(ours, expected, atol=ATOL, rtol=0)


def test_ocr_texts(ocr):
    model, images, reference, _ = ocr
    sampler = zoo.load_spec("nano-ocr").sections.sampler.build()
    rows = model.generate({"source": images}, sampler, max_length=33).best()
    chars = ["", *reference["chars"]]  # rows are padded with the blank, token 0
    texts = ["".join(chars[token] for token in row) for row in rows]
    assert texts == [example["text"] for example in reference["examples"]]


@pytest.mark.parametrize(
    ("name", "spec", "map"),
    [
        ("llama2c-stories260K", "stories260k", "llama2c"),
        ("g2p-en-gru", "g2p-en", "g2p-en"),
        ("gat-cora-petarv", "gat-cora", "gat-cora"),
        ("nano-ocr-crnn", "nano-ocr", "nano-ocr"),
    ],
)
def test_import_and_export_are_bit_exact(name, spec, map, tmp_path):
    file = load_reference(name)[0] / "model.safetensors"
    path = zoo.import_model(file, tmp_path / "in.safetensors", spec=spec, map=map)
    zoo.export_model(path, tmp_path / "out", map=map)
    before, after = load_file(file), load_file(tmp_path / "out" / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
