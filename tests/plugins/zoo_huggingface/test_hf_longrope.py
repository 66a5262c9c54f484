"""LongRoPE: short and long texts, and generation that passes the original length."""

import copy

import pytest
import torch
import transformers as hf
from hf_model_kit import generate_transformers, import_and_load, randomize
from hf_models import EOS, PAD

import zoo

ORIGINAL = 10


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Return an imported model of Phi-3 and its original."""
    folder = tmp_path_factory.mktemp("phi3")
    config = hf.Phi3Config(
        vocab_size=31, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, bos_token_id=1, eos_token_id=EOS,
        pad_token_id=PAD, max_position_embeddings=64, original_max_position_embeddings=ORIGINAL,
        rope_parameters={
            "rope_type": "longrope", "rope_theta": 99.0, "short_factor": [1.0, 2.0],
            "long_factor": [3.0, 7.0],
        },
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = randomize("phi3", hf.Phi3ForCausalLM(config))
    theirs.save_pretrained(folder / "theirs")
    return import_and_load(folder / "theirs", folder), theirs


@pytest.mark.parametrize("length", [3, ORIGINAL, ORIGINAL + 1, 20])
@torch.no_grad()
def test_the_factors_are_those_of_the_length_of_the_text(pair, length):
    ours, theirs = pair
    tokens = torch.randint(3, 31, (3, length), generator=torch.Generator().manual_seed(1))
    expected = theirs(input_ids=tokens).logits[:, :-1]
    # Targets are inputs from the second token on: the last input is not processed.
    padded = torch.cat([tokens, tokens[:, :1]], dim=1)
    actual = ours({"target": padded}).logits[:, :-1]
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("length", [3, ORIGINAL - 1, ORIGINAL, ORIGINAL + 1])
def test_generation_passes_the_original_length_as_transformers(pair, length, beams, accelerated):
    ours, theirs = pair
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(3, 31, (12, length), generator=generator)
    sampler = {"type": "beam", "width": beams, "length_penalty": 1.0} if beams > 1 else "greedy"
    model = zoo.accelerate(copy.deepcopy(ours)) if accelerated else ours
    answers = zoo.generate(model, tokens.tolist(), sampler=sampler, max_length=12)
    expected = generate_transformers(theirs, tokens, num_beams=beams)
    assert [ranked[0].tokens for ranked in answers] == expected
