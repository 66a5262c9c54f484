"""Trained models of other people, brought in by a map, answer as they did at home."""

import re
import shutil

import numpy
import pytest
import torch
from pretrained_kit import ATOL, ROOT, load_reference
from safetensors.torch import load_file

import zoo
from zoo.generation.tokenizer import Tokenizer


def _import_and_load(folder, tmp_path_factory, spec, map):
    path = tmp_path_factory.mktemp("in") / "model.safetensors"
    zoo.import_model(folder / "model.safetensors", path, spec=spec, map=map)
    return zoo.load(path).eval()


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    folder, reference, arrays = load_reference("llama2c-stories260K")
    return _import_and_load(folder, tmp_path_factory, "stories260k", "llama2c"), reference, arrays


def test_the_storyteller_has_the_same_logits(stories):
    model, reference, arrays = stories
    for index, example in enumerate(reference["examples"]):
        tokens = torch.tensor([[*example["ids"], 2]])
        logits = model({"target": tokens}).logits[0]
        expected = torch.from_numpy(arrays[f"logits_{index}"])
        torch.testing.assert_close(logits, expected, atol=ATOL, rtol=0)


def test_the_storyteller_goes_on_with_the_same_64_tokens(stories):
    model, reference, _ = stories
    for example in reference["examples"]:
        prompt = example["ids"][1:]  # the model sets the start token before it
        (ranked,) = zoo.generate(model, [prompt], sampler="greedy", max_length=64)
        assert ranked[0].tokens == example["greedy_ids"][len(example["ids"]) :]


def test_the_storyteller_speaks_by_its_own_tokenizer(tmp_path, monkeypatch):
    folder, reference, _ = load_reference("llama2c-stories260K")
    shutil.copy(folder / "tokenizer.json", tmp_path / "llama2c.json")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
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
        assert tokenizer.ids([example["prompt"]]) == [example["ids"]]
        ((best,),) = zoo.generate(model, [example["prompt"]], sampler="greedy", max_length=64)
        told = tokenizer.text([*example["ids"], *best.tokens])
        assert told + "\n" == example["run_c_text"]


@pytest.fixture(scope="module")
def speller(tmp_path_factory):
    folder, reference, arrays = load_reference("g2p-en-gru")
    return _import_and_load(folder, tmp_path_factory, "g2p-en", "g2p-en"), reference, arrays


def test_the_speller_has_the_same_states_and_logits(speller):
    model, reference, arrays = speller
    for index, example in enumerate(reference["examples"]):
        said = [2, *example["argmax_ids"]]
        source = torch.tensor([example["grapheme_ids"]])
        states = model.encode(source).states[0]
        logits = model({"source": source, "target": torch.tensor([said])}).logits[0]
        for ours, theirs in ((states, "enc_h"), (logits, "logits")):
            expected = torch.from_numpy(arrays[f"{theirs}_{index}"])
            torch.testing.assert_close(ours, expected, atol=ATOL, rtol=0)


def test_the_speller_says_all_words_alike(speller):
    model, reference, _ = speller
    words = [example["grapheme_ids"] for example in reference["examples"]]
    spoken = [
        [reference["phonemes"][token] for token in ranked[0].tokens]
        for ranked in zoo.generate(model, words, sampler="greedy", max_length=20)
    ]
    assert len(spoken) == 12
    assert spoken == [example["phonemes"] for example in reference["examples"]]


@pytest.fixture(scope="module")
def citations(tmp_path_factory):
    """The model, the graph of Cora as it reads it, and the reference answers."""
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
def test_the_citation_graph_gets_the_same_logits_and_names(citations):
    model, batch, test, reference, arrays = citations
    logits = model(batch).logits[0]
    expected = torch.from_numpy(arrays["logits"])
    torch.testing.assert_close(logits, expected, atol=ATOL, rtol=0)
    named = logits.argmax(dim=-1)
    assert torch.equal(named, expected.argmax(dim=-1))
    right = (named == batch["target"][0])[test].double().mean().item()
    assert round(right, 3) == reference["test_accuracy"]


@torch.no_grad()
def test_the_citation_graph_is_looked_at_alike(citations):
    model, batch, _, _, arrays = citations
    with zoo.recording(model) as looks:
        model(batch)
    nodes = batch["features"].shape[1]
    loops = torch.arange(nodes)[:, None].expand(nodes, 2)
    source, target = torch.cat([batch["edges"][0], loops]).T
    asked, seen = (torch.from_numpy(arrays[key]).long() for key in ("att_rows", "att_cols"))
    for layer, theirs in ((0, "att_layer1_head0"), (1, "att_out_head0")):
        (weights,) = looks[f"encoder.layers.{layer}"]
        ours = torch.zeros(nodes, nodes)
        ours[target, source] = weights[0, 0]
        expected = torch.from_numpy(arrays[theirs])
        torch.testing.assert_close(ours[asked, seen], expected, atol=ATOL, rtol=0)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    folder, reference, arrays = load_reference("nano-ocr-crnn")
    model = _import_and_load(folder, tmp_path_factory, "nano-ocr", "nano-ocr")
    pixels = [arrays[f"pixels_{i}"] for i in range(len(reference["examples"]))]
    images = (torch.from_numpy(numpy.stack(pixels)).float() / 255 - 0.5) / 0.5
    return model, images, reference, arrays


@torch.no_grad()
def test_the_reader_of_words_has_the_same_features_and_logits(reader):
    model, images, reference, arrays = reader
    features, logits = model.source(images), model.frame_logits(images)[0]
    for index in range(len(reference["examples"])):
        for ours, theirs in ((features[index].T, "conv"), (logits[index], "logits")):
            expected = torch.from_numpy(arrays[f"{theirs}_{index}"])
            torch.testing.assert_close(ours, expected, atol=ATOL, rtol=0)


def test_the_reader_of_words_reads_the_same_texts(reader):
    model, images, reference, _ = reader
    sampler = zoo.load_spec("nano-ocr").sections.sampler.build()
    rows = model.generate({"source": images}, sampler, max_length=33).best()
    symbols = ["", *reference["chars"]]  # the blank is what rows are padded with
    texts = ["".join(symbols[token] for token in row) for row in rows]
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
def test_an_export_gives_every_tensor_back_bit_for_bit(name, spec, map, tmp_path):
    file = load_reference(name)[0] / "model.safetensors"
    path = zoo.import_model(file, tmp_path / "in.safetensors", spec=spec, map=map)
    zoo.export_model(path, tmp_path / "out", map=map)
    before, after = load_file(file), load_file(tmp_path / "out" / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
