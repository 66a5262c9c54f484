"""Steps of samplers in Triton kernels, compared with those from log-probabilities."""

from dataclasses import replace

import pytest
import torch

from zoo.generation.prompts import PromptBatch
from zoo.generation.request import DecodeRequest
from zoo.generation.search import advance_search, init_search
from zoo_sampling.beam import Beam
from zoo_sampling.greedy import Greedy

# Of NumPy, in the interpreter.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
V = 11


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    pytest.importorskip("triton")
    from zoo_sampling.kernels import candidates

    monkeypatch.setenv("ZOO_TRITON", "interpret")
    monkeypatch.setattr(candidates, "BLOCK", 8)


def make_search(sampler, eos_ids):
    prefix = torch.ones(2, 1, dtype=torch.long, device=DEVICE)
    forced = torch.zeros(2, dtype=torch.long, device=DEVICE)
    prompts = PromptBatch(prefix, prefix[:, :0], forced, eos_ids, 0, 6)
    search = init_search(sampler, prompts, V)
    search.scores[:] = -torch.rand(search.scores.shape, generator=make_generator()).to(DEVICE)
    return search, prompts


def make_generator():
    return torch.Generator().manual_seed(2)


def make_logits(sampler):
    logits = torch.randn(2, sampler.width, V, generator=make_generator()).to(DEVICE)
    logits[0, 0, 0] = 9.0  # padding
    logits[1, -1, 3:] = float("-inf")
    return logits


def both_steps(sampler, search, prompts, logits, monkeypatch):
    request = DecodeRequest(sampler=sampler, max_length=6)
    found = advance_search(search, logits, request, prompts)
    monkeypatch.setenv("ZOO_TRITON", "off")
    return found, advance_search(search, logits, request, prompts)


@pytest.mark.parametrize("eos_ids", [(2,), (0, 4), ()], ids=str)
@pytest.mark.parametrize("sampler", [Greedy(), Beam(width=3)], ids=lambda s: s.name)
@torch.no_grad()
def test_a_step_equals_that_from_logprobs(sampler, eos_ids, monkeypatch):
    search, prompts = make_search(sampler, eos_ids)
    search.finished[1, 0] = True
    logits = make_logits(sampler)
    found, expected = both_steps(sampler, search, prompts, logits, monkeypatch)
    torch.testing.assert_close(found[0].scores, expected[0].scores)
    possible = ~expected[0].scores.isneginf()
    assert torch.equal(found[0].tokens[possible], expected[0].tokens[possible])
    assert torch.equal(found[1][possible], expected[1][possible])
    assert torch.equal(found[2], expected[2])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("sampler", [Greedy(), Beam(width=3)], ids=lambda s: s.name)
@torch.no_grad()
def test_invalid_logits_are_found(sampler, value, monkeypatch):
    search, prompts = make_search(sampler, (2,))
    logits = make_logits(sampler)
    logits[1, 0, 9] = value
    found, expected = both_steps(sampler, search, prompts, logits, monkeypatch)
    assert bool(found[2])
    assert bool(expected[2])


@torch.no_grad()
def test_a_row_without_possible_tokens_has_no_score(monkeypatch):
    search, prompts = make_search(Greedy(), (2,))
    logits = make_logits(Greedy())
    logits[1] = float("-inf")
    (after, _, invalid), _ = both_steps(Greedy(), search, prompts, logits, monkeypatch)
    assert after.scores[:, 0].isneginf().tolist() == [False, True]
    assert not bool(invalid)


BEAMS = [
    Beam(width=2, length_penalty=1.0, early_stopping=True),
    Beam(width=3, length_penalty=0.6, length_norm="gnmt", early_stopping="never"),
    Beam(width=1, length_penalty=-0.5),
]


@pytest.mark.parametrize("sampler", BEAMS, ids=["early", "gnmt", "narrow"])
@torch.no_grad()
def test_several_steps_of_beam_search_update_the_pool(sampler, monkeypatch):
    request = DecodeRequest(sampler=sampler, max_length=6)
    generator, ended = torch.Generator().manual_seed(5), False
    search, prompts = make_search(sampler, (2, 3))
    for _ in range(4):
        logits = torch.randn(2, sampler.width, V, generator=generator).to(DEVICE)
        monkeypatch.setenv("ZOO_TRITON", "interpret")
        found, *_ = advance_search(
            replace(search, tokens=search.tokens.clone()), logits, request, prompts
        )
        monkeypatch.setenv("ZOO_TRITON", "off")
        expected, *_ = advance_search(search, logits, request, prompts)
        for name, tensor in expected.sampler_state.items():
            actual = found.sampler_state[name]
            if name == "tokens":  # rows without a score are not compared
                has_score = ~expected.sampler_state["scores"].isneginf()
                actual, tensor = actual[has_score], tensor[has_score]
            torch.testing.assert_close(actual, tensor)
        torch.testing.assert_close(found.scores, expected.scores)
        search = expected
        ended = ended or bool(search.sampler_state["scores"].isfinite().any())
    assert ended
