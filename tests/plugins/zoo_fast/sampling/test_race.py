"""Random sampling from logits with kernels, against `Sampler.distribution`."""

import math
from dataclasses import replace

import pytest
import torch

from zoo.generation.prompts import PromptBatch
from zoo.generation.search import init_search, select_next
from zoo.plugin import DecodeRequest
from zoo_fast.generation import selection
from zoo_fast.sampling.keep_rules import rule_of
from zoo_sampling.logits import apply_temperature, keep_tokens
from zoo_sampling.min_p import MinP
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP

pytest.importorskip("triton")

# Of NumPy, in the interpreter.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INF = float("inf")
PAD = 3

SAMPLERS = [
    Temperature(),
    Temperature(temperature=0.6),
    MinP(p=0.05),
    MinP(p=1.0, temperature=1.7),
    TopK(k=1),
    TopK(k=7, temperature=0.7),
    TopK(k=10_000),
    TopP(p=0.55),
    TopP(p=0.93, temperature=1.4),
    TopP(p=1e-9),
    TopP(p=1.0),
]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def make_id(value):
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return "-".join(str(part) for part in (value.name, *vars(value).values()))


@pytest.fixture(autouse=True)
def race(monkeypatch):
    """Kernels with several chunks of a row."""
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    from zoo_fast.sampling.kernels import race

    monkeypatch.setattr(race, "BLOCK", 32)
    return race


def make_search(rows, vocab, *, eos_ids=(2,)):
    prefix = torch.ones(rows, 1, dtype=torch.long, device=DEVICE)
    forced = torch.zeros(rows, dtype=torch.long, device=DEVICE)
    prompts = PromptBatch(prefix, prefix[:, :0], forced, eos_ids, PAD, 6, PAD in eos_ids)
    search = init_search(Temperature(), prompts, vocab)
    return replace(search, scores=torch.full_like(search.scores, -1.5)), prompts


def make_logits(rows, vocab, dtype, *, seed=0, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(rows, 1, vocab, generator=generator)
    logits[..., PAD] = 11.0
    return logits.to(dtype).to(DEVICE)


def make_noise(logits, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.empty(logits.shape).exponential_(generator=generator).to(DEVICE)


def logprobs_of(logits, search):
    """Return what the reference passes to a sampler."""

    class Keep(Temperature):
        def advance(self, logprobs, search, generator=None):
            self.logprobs = logprobs
            return super().advance(logprobs, search, generator)

    keep = Keep()
    request = DecodeRequest(sampler=keep, max_length=6)
    _, prompts = make_search(len(logits), logits.shape[-1], eos_ids=())
    selected = select_next(search, logits, request, prompts)
    return keep.logprobs, selected.nan_or_inf


def reference_distribution(sampler, logprobs):
    """Return `Sampler.distribution`; for top-p with a stable sort, as on a GPU."""
    if not isinstance(sampler, TopP) or sampler.p == 1:
        return sampler.distribution(logprobs)
    kept = exact_nucleus(logprobs[:, 0].double(), sampler.p, sampler.temperature)[:, None]
    return keep_tokens(apply_temperature(logprobs, sampler.temperature), kept)


def exact_nucleus(logits, p, temperature):
    """Return the nucleus of each row of logits [R, V], in float64: [R, V]."""
    weights = ((logits - logits.amax(dim=-1, keepdim=True)) / temperature).exp()
    ids = torch.arange(logits.shape[-1], device=DEVICE)
    above = logits[:, None, :] > logits[:, :, None]
    equal = logits[:, None, :] == logits[:, :, None]
    above |= equal & (ids[None, :] > ids[:, None])
    mass = (above * weights[:, None, :]).sum(dim=-1)
    return (mass < p * weights.sum(dim=-1, keepdim=True)) & (weights > 0)


def expected_step(sampler, logits, noise, search):
    """Return tokens, scores and flags of the reference, which samples so on a GPU."""
    logprobs, nan_or_inf = logprobs_of(logits, search)
    p = reference_distribution(sampler, logprobs)
    tokens = (p / noise.clamp(min=torch.finfo(p.dtype).tiny)).argmax(dim=-1)
    scores = search.scores + logprobs.gather(-1, tokens[..., None])[..., 0]
    return tokens, scores, nan_or_inf


def assert_equal_step(race, sampler, logits, noise, search):
    found = race.race_step(logits, noise, search, rule_of(sampler, logits.shape[-1]))
    tokens, scores, nan_or_inf = expected_step(sampler, logits, noise, search)
    assert found.selection.tokens.tolist() == tokens.tolist()
    torch.testing.assert_close(found.selection.scores, scores)
    assert found.selection.parents.tolist() == torch.zeros_like(tokens).tolist()
    assert found.nan_or_inf.tolist() == nan_or_inf.tolist()


def last_kept(race, sampler, logits, search):
    """Return the token of each row [R] that is the last one to be kept.

    The noise is the squared weight, so the least weight wins, and of equal ones the smallest ID.
    """
    weights = (logits.float() - logits.float().amax(dim=-1, keepdim=True)) / sampler.temperature
    noise = (2 * weights).exp()
    found = race.race_step(logits, noise, search, rule_of(sampler, logits.shape[-1]))
    return found.selection.tokens[:, 0].tolist()


def last_of(kept, logits):
    """Return the token with the least logit, then the smallest ID, of those kept [R, V]."""
    return logits[:, 0].float().masked_fill(~kept, INF).argmin(dim=-1).tolist()


@pytest.mark.parametrize("sampler", SAMPLERS, ids=make_id)
def test_tokens_are_those_of_the_reference(race, sampler):
    vocab = 75
    search, _ = make_search(5, vocab)
    search.finished[4] = True
    logits = make_logits(5, vocab, torch.bfloat16)
    logits[1, 0, 5:] = -INF
    logits[2] = logits[2].round()
    assert_equal_step(race, sampler, logits, make_noise(logits), search)


@pytest.mark.parametrize("dtype", DTYPES, ids=make_id)
@pytest.mark.parametrize("sampler", [TopK(k=5, temperature=0.7), TopP(p=0.8)], ids=make_id)
@pytest.mark.parametrize("vocab", [5, 32, 33])
def test_dtypes_and_small_vocabularies(race, sampler, vocab, dtype):
    search, _ = make_search(1, vocab)
    logits = make_logits(1, vocab, dtype, seed=vocab)
    assert_equal_step(race, sampler, logits, make_noise(logits), search)


@pytest.mark.parametrize(
    "sampler", [Temperature(temperature=0.6), MinP(p=0.05), TopK(k=4), TopP(p=0.6)], ids=make_id
)
def test_rows_without_valid_tokens(race, sampler):
    search, _ = make_search(6, 40)
    logits = make_logits(6, 40, torch.bfloat16)
    logits[0, 0, 35] = INF
    logits[1, 0, 35] = math.nan
    logits[2] = -INF
    logits[3, 0, :PAD] = logits[3, 0, PAD + 1 :] = -INF
    logits[4, 0, PAD] = math.nan
    logits[5, 0, PAD] = INF
    assert_equal_step(race, sampler, logits, make_noise(logits), search)


@pytest.mark.parametrize("sampler", [TopP(p=0.8), TopK(k=5)], ids=make_id)
def test_padding_is_sampled_if_it_ends(race, sampler):
    search, _ = make_search(4, 40, eos_ids=(PAD,))
    logits = make_logits(4, 40, torch.bfloat16)
    noise = make_noise(logits)
    found = race.race_step(logits, noise, search, rule_of(sampler, 40))
    assert PAD in found.selection.tokens
    assert_equal_step(race, sampler, logits, noise, search)


NUCLEI = [TopP(p=0.7), TopP(p=0.9, temperature=2.0)]


@pytest.mark.parametrize(
    ("sampler", "round_to"),
    [
        (NUCLEI[0], None),
        (NUCLEI[0], 2.0),
        (NUCLEI[1], 0.5),
        pytest.param(NUCLEI[0], 0.5, marks=pytest.mark.slow),
        pytest.param(NUCLEI[1], None, marks=pytest.mark.slow),
        pytest.param(NUCLEI[1], 2.0, marks=pytest.mark.slow),
    ],
    ids=lambda value: make_id(value) if isinstance(value, TopP) else str(value),
)
def test_the_nucleus_is_exact_with_ties(race, sampler, round_to):
    """Of equal tokens at the threshold, those with the smallest IDs are removed."""
    vocab = 70
    search, _ = make_search(3, vocab, eos_ids=(PAD,))
    logits = make_logits(3, vocab, torch.float32, scale=2.0)
    if round_to is not None:
        logits = (logits / round_to).round() * round_to
    logits[..., PAD] = -0.0
    kept = exact_nucleus(logits[:, 0].double(), sampler.p, sampler.temperature)
    assert last_kept(race, sampler, logits, search) == last_of(kept, logits)
    if round_to is None:  # the sort of the reference is not stable on the CPU
        logprobs, _ = logprobs_of(logits, search)
        assert torch.equal(kept, sampler.distribution(logprobs)[:, 0] > 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=make_id)
@pytest.mark.parametrize("sampler", [TopK(k=6), MinP(p=0.2), Temperature()], ids=make_id)
def test_the_kept_tokens_are_those_of_the_reference(race, sampler, dtype):
    """All tokens equal to the k-th are kept; 0 and -0 are equal."""
    search, _ = make_search(4, 67)
    logits = make_logits(4, 67, dtype).round()
    logits[3] = -logits[3].abs().clamp(min=1.0)
    logits[3, 0, 10:40:3] = -0.0
    logits[3, 0, 11:40:3] = 0.0
    logits[..., PAD] = 1.0
    logprobs, _ = logprobs_of(logits, search)
    kept = sampler.distribution(logprobs)[:, 0] > 0
    assert last_kept(race, sampler, logits, search) == last_of(kept, logits)


def test_equal_logits_keep_the_largest_ids(race):
    search, _ = make_search(2, 100, eos_ids=(PAD,))
    logits = torch.zeros(2, 1, 100, dtype=torch.bfloat16, device=DEVICE)
    assert last_kept(race, TopP(p=0.5), logits, search) == [50, 50]


def test_a_step_takes_the_random_numbers_of_the_reference():
    """The reference is used on the CPU, where it takes other ones."""
    sampler = TopP(p=0.8)
    logits = make_logits(2, 40, torch.float32)
    search, prompts = make_search(2, 40)
    request = DecodeRequest(sampler=sampler, max_length=6)
    steps = []
    for select in (selection.select_next, select_next):
        generator = torch.Generator(DEVICE).manual_seed(4)
        each = replace(request, generator=generator)
        steps.append(select(search, logits, each, prompts).selection)
    assert torch.equal(steps[0].tokens, steps[1].tokens)
    torch.testing.assert_close(steps[0].scores, steps[1].scores)
