"""Padding as an ordinary token, and the end token at the maximum length, as in transformers."""

import copy

import pytest
import torch
from hf_model_kit import (
    generate_transformers,
    generate_zoo,
    hf_model,
    import_and_load,
    prompts,
    with_bos,
)
from hf_models import EOS

import zoo

PAD = {"llama": 0, "olmo2": 0, "gemma3_text": 0, "bart": 1, "marian": 0, "pegasus": 0, "t5": 0}


def save_original(name, folder):
    """Save a model that often generates the padding token, and return it."""
    theirs = hf_model(name)
    theirs.config.pad_token_id = theirs.generation_config.pad_token_id = pad = PAD[name]
    with torch.no_grad():
        weight = theirs.get_output_embeddings().weight
        weight[pad] = 3 * torch.randn(weight.shape[1])
        if hasattr(theirs, "final_logits_bias"):
            theirs.final_logits_bias[0, pad] += 5
    theirs.save_pretrained(folder)
    return theirs


@pytest.fixture(scope="module", params=PAD)
def pair(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    theirs = save_original(request.param, folder / "theirs")
    return import_and_load(folder / "theirs", folder), theirs, PAD[request.param]


@pytest.mark.parametrize("beams", [1, 3])
def test_padding_is_generated_as_any_other_token(pair, beams):
    ours, theirs, pad = pair
    rows = with_bos(ours, prompts(24))
    expected = generate_transformers(theirs, rows, num_beams=beams, pad_token_id=pad)
    assert any(pad in row[:-1] for row in expected)
    sampler = {"type": "beam", "width": beams, "length_penalty": 1.0} if beams > 1 else "greedy"
    for model in (ours, zoo.accelerate(copy.deepcopy(ours))):
        assert generate_zoo(model, rows, sampler) == expected


FORCED = ["llama", "bart", "mbart", "pegasus", "marian"]


@pytest.fixture(scope="module", params=FORCED)
def forced(request, tmp_path_factory):
    """Return a model whose texts end at the maximum length at the latest, and its original."""
    folder = tmp_path_factory.mktemp(request.param)
    theirs = hf_model(request.param)
    theirs.generation_config.forced_eos_token_id = EOS
    theirs.save_pretrained(folder / "theirs")
    return import_and_load(folder / "theirs", folder), theirs


SAMPLERS = [
    ("greedy", {}),
    *(({"type": "beam", "width": 3, "length_penalty": p}, {"num_beams": 3, "length_penalty": p})
      for p in (1.0, -2.0)),
]  # fmt: skip


@pytest.mark.parametrize(("sampler", "options"), SAMPLERS)
@pytest.mark.parametrize("max_length", [1, 2, 9])
def test_the_end_token_is_forced_at_the_maximum_length(forced, sampler, options, max_length):
    ours, theirs = forced
    rows = with_bos(ours, prompts(24))
    start = 1 if theirs.config.is_encoder_decoder else rows.shape[1]
    with torch.no_grad():
        expected = theirs.generate(
            rows, attention_mask=torch.ones_like(rows), max_new_tokens=max_length,
            do_sample=False, pad_token_id=EOS, **options,
        )[:, start:]  # fmt: skip
    assert (expected == EOS).any(dim=1).all()
    cut = [row[: row.index(EOS)] for row in expected.tolist()]
    for model in (ours, zoo.accelerate(copy.deepcopy(ours))):
        answers = zoo.generate(model, rows.tolist(), sampler=sampler, max_length=max_length)
        assert [ranked[0].tokens for ranked in answers] == cut


def test_samples_end_at_the_maximum_length(forced):
    ours, _ = forced
    rows = with_bos(ours, prompts(24)).tolist()
    for model in (ours, zoo.accelerate(copy.deepcopy(ours))):
        ranked = zoo.generate(model, rows, sampler="temperature", max_length=4, seed=0)
        assert max(len(each[0].tokens) for each in ranked) == 3


def test_prompts_of_other_lengths_end_at_their_own_maximum(forced):
    ours, _ = forced
    if ours.generation_input != "prompt":
        pytest.skip("the source is no prompt")
    rows = with_bos(ours, prompts(8)).tolist()
    lengths = [5, 2, 3, 4, 5, 1, 2, 2]
    rows = [row[:length] for row, length in zip(rows, lengths, strict=True)]
    alone = [zoo.generate(ours, [row], sampler="greedy", max_length=6)[0][0] for row in rows]
    for model in (ours, zoo.accelerate(copy.deepcopy(ours))):
        together = zoo.generate(model, rows, sampler="greedy", max_length=6)
        assert [ranked[0].tokens for ranked in together] == [each.tokens for each in alone]
