"""Imported models generate the same tokens as `generate` of transformers."""

import json
from itertools import takewhile

import pytest
import torch
from hf_model_kit import (
    MAX_LENGTH,
    generate_transformers,
    generate_zoo,
    hf_model,
    import_and_load,
    prompts,
    with_bos,
)
from hf_models import MODELS

import zoo


@pytest.fixture(
    scope="module", params=["gpt2", "llama", "mistral", "qwen2", "marian", "t5", "t5-1.1"]
)
def pair(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs")
    theirs = hf_model(request.param)
    theirs.save_pretrained(folder)
    return import_and_load(folder, folder), theirs


@pytest.mark.parametrize("config_file", ["config.json", "generation_config.json"])
def test_several_end_tokens(config_file, tmp_path):
    eos = list(range(2, 12))
    theirs = hf_model("llama")
    theirs.save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "generation_config.json").unlink()
    file = tmp_path / "theirs" / config_file
    config = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(config | {"eos_token_id": eos}))
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    exported = MODELS["llama"][0].from_pretrained(out).eval()
    tokens = with_bos(ours, prompts(20))
    expected = []
    for row in tokens:
        (generated,) = exported.generate(
            row[None], attention_mask=torch.ones_like(row[None]), max_new_tokens=MAX_LENGTH,
            do_sample=False, pad_token_id=0,
        )[:, 5:].tolist()  # fmt: skip
        expected.append(list(takewhile(lambda token: token not in eos, generated)))
    assert len({len(generated) for generated in expected}) > 2
    assert generate_zoo(ours, tokens) == expected
    pieces = zoo.stream(ours, tokens[0].tolist(), max_length=MAX_LENGTH)
    assert "".join(pieces) == " ".join(map(str, expected[0]))


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_model_without_an_end_token(name, tmp_path):
    theirs = hf_model(name)
    theirs.config.eos_token_id = theirs.generation_config.eos_token_id = None
    theirs.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"eos_token_id": None}))
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    tokens = with_bos(ours, prompts(3))
    found = theirs.generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=MAX_LENGTH,
        do_sample=False, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    assert generate_zoo(ours, tokens) == found[:, 5:].tolist()
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    assert json.loads((out / "config.json").read_text())["eos_token_id"] is None


@pytest.mark.parametrize("beams", [1, 4])
def test_continuations_of_fifty_prompts(pair, beams):
    ours, theirs = pair
    tokens = with_bos(ours, prompts())
    sampler = {"type": "beam", "width": beams, "length_penalty": 1.0} if beams > 1 else "greedy"
    assert generate_zoo(ours, tokens, sampler) == generate_transformers(
        theirs, tokens, num_beams=beams
    )


def test_prompts_of_unequal_length_equal_separate_generation(pair):
    ours, theirs = pair
    tokens = with_bos(ours, prompts(12))
    lengths = [5, 2, 3, 4, 5, 1, 2, 2, 3, 5, 1, 4]
    rows = [row[:length] for row, length in zip(tokens, lengths, strict=True)]
    for row, generated in zip(rows, generate_zoo(ours, rows), strict=True):
        assert [generated] == generate_transformers(theirs, row[None])
