"""Trained models of other people, brought in by a map, answer as they did at home."""

import pytest
import torch
from trained import ATOL, trained

import zoo


def _brought_in(folder, tmp_path_factory, spec, map):
    path = tmp_path_factory.mktemp("in") / "model.safetensors"
    zoo.import_model(folder / "model.safetensors", path, spec=spec, map=map)
    return zoo.load(path).eval()


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    folder, reference, arrays = trained("llama2c-stories260K")
    return _brought_in(folder, tmp_path_factory, "stories260k", "llama2c"), reference, arrays


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


@pytest.fixture(scope="module")
def speller(tmp_path_factory):
    folder, reference, arrays = trained("g2p-en-gru")
    return _brought_in(folder, tmp_path_factory, "g2p-en", "g2p-en"), reference, arrays


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
