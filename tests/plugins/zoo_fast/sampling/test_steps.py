"""Steps of samplers from logits, with and without kernels, against the reference."""

from dataclasses import dataclass, replace

import pytest
import torch

from zoo.generation.prompts import PromptBatch
from zoo.generation.search import init_search, select_next, update_search
from zoo.plugin import DecodeRequest
from zoo_fast.generation import selection
from zoo_fast.generation.known_samplers import known_sampler
from zoo_sampling.beam import Beam
from zoo_sampling.greedy import Greedy

# Of NumPy, in the interpreter.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INF = float("inf")

GREEDY = [Greedy()]
BEAMS = [
    Beam(width=3),
    Beam(width=1, length_penalty=-0.5),
    Beam(width=2, length_penalty=1.0, early_stopping=True),
    Beam(width=3, length_penalty=0.6, length_norm="gnmt", early_stopping="never"),
    Beam(width=5, length_penalty=0.3),
]


def make_id(value):
    if not isinstance(value, Greedy | Beam):
        return None
    return value.name + (f"-{value.width}" if value.width > 1 else "")


@pytest.fixture(params=["cpu", "kernel"])
def path(request, monkeypatch):
    """Compute the steps without and with kernels."""
    if request.param == "kernel":
        pytest.importorskip("triton")
        from zoo_fast.sampling.kernels import candidates

        monkeypatch.setattr(candidates, "BLOCK", 8)
    monkeypatch.setenv("ZOO_TRITON", "interpret" if request.param == "kernel" else "off")
    return request.param


@dataclass(frozen=True)
class Case:
    """Logits and a search before a step.

    Args:
        vocab: odd, and not a multiple of the size of a chunk, or a single token besides padding.
        step: logits are rounded to multiples of it, so that there are ties between tokens.
        impossible: tokens from this one on have probability 0 in the last row of the last item.
        finished: how many hypotheses of the last item have ended.
    """

    vocab: int = 11
    step: float | None = None
    impossible: int | None = 3
    finished: int = 0
    eos_ids: tuple[int, ...] = (2,)


CASES = {
    "plain": Case(),
    "one-chunk": Case(vocab=7),
    "ties": Case(step=1.0, impossible=None, eos_ids=()),
    "all-equal": Case(step=100.0, impossible=None, eos_ids=()),
    "one-finished": Case(finished=1),
    "all-finished": Case(finished=99),
    "no-token": Case(impossible=0),
    "one-token": Case(impossible=2),
    "padding-ends": Case(eos_ids=(0, 4)),
    "never-ends": Case(eos_ids=()),
    "large": Case(vocab=37, eos_ids=(2, 3)),
}


def make_search(sampler, case, batch=2):
    prefix = torch.ones(batch, 1, dtype=torch.long, device=DEVICE)
    forced = torch.zeros(batch, dtype=torch.long, device=DEVICE)
    prompts = PromptBatch(prefix, prefix[:, :0], forced, case.eos_ids, 0, 6, 0 in case.eos_ids)
    search = init_search(sampler, prompts, case.vocab)
    search.scores[:] = -torch.rand(search.scores.shape, generator=make_generator()).to(DEVICE)
    search.finished[-1, : case.finished] = True
    return search, prompts


def make_generator():
    return torch.Generator().manual_seed(2)


def make_logits(sampler, case):
    logits = torch.randn(2, sampler.width, case.vocab, generator=make_generator()).to(DEVICE)
    logits[0, 0, 0] = 9.0  # padding
    if case.step is not None:
        logits = (logits / case.step).round() * case.step
    if case.impossible is not None:
        logits[-1, -1, case.impossible :] = -INF
    return logits


def both_steps(sampler, search, prompts, logits):
    """Return the step from logits and the reference; the second one has its own tokens."""
    request = DecodeRequest(sampler=sampler, max_length=6)
    fast = replace(search, tokens=search.tokens.clone())
    return [
        (update_search(each, selected), selected)
        for each, selected in (
            (fast, selection.select_next(fast, logits, request, prompts)),
            (search, select_next(search, logits, request, prompts)),
        )
    ]


def assert_equal_steps(found, expected, *, ties=False):
    """Compare two steps; of tokens with the same score any can be selected."""
    (after, selected), (reference_after, reference) = found, expected
    torch.testing.assert_close(after.scores, reference_after.scores)
    assert torch.equal(selected.nan_or_inf, reference.nan_or_inf)
    assert set(after.sampler_state) == set(reference_after.sampler_state)
    pool = reference_after.sampler_state
    if pool:
        torch.testing.assert_close(after.sampler_state["scores"], pool["scores"])
        assert torch.equal(after.sampler_state["done"], pool["done"])
    if ties:
        return
    possible = ~reference_after.scores.isneginf()  # other hypotheses are arbitrary
    for name in ("tokens", "finished"):
        actual, tensor = getattr(after, name), getattr(reference_after, name)
        assert torch.equal(actual[possible], tensor[possible]), name
    assert torch.equal(selected.selection.parents[possible], reference.selection.parents[possible])
    if pool:
        has_score = ~pool["scores"].isneginf()
        assert torch.equal(after.sampler_state["tokens"][has_score], pool["tokens"][has_score])


def make_pairs():
    """Return samplers and cases; in quick tests, the widest beam has a few cases only."""
    for sampler in (*GREEDY, *BEAMS):
        for name, case in CASES.items():
            is_slow = sampler is BEAMS[-1] and name not in ("plain", "ties", "one-finished")
            marks = [pytest.mark.slow] if is_slow else []
            yield pytest.param(sampler, case, marks=marks, id=f"{make_id(sampler)}-{name}")


@pytest.mark.parametrize(("sampler", "case"), list(make_pairs()))
@torch.no_grad()
def test_a_step_equals_that_from_logprobs(sampler, case, path):
    search, prompts = make_search(sampler, case)
    logits = make_logits(sampler, case)
    found, expected = both_steps(sampler, search, prompts, logits)
    assert_equal_steps(found, expected, ties=case.step is not None)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("sampler", [Greedy(), *BEAMS[:3]], ids=make_id)
@torch.no_grad()
def test_a_step_in_half_precision_equals_that_in_float32(sampler, dtype, path):
    case = Case(vocab=300, impossible=250)
    logits = make_logits(sampler, case).to(dtype)
    logits[0, -1, 20:30] = 0.0
    logits[0, -1, 25:30] = -0.0
    steps = []
    for each in (logits, logits.float()):
        search, prompts = make_search(sampler, case)
        steps.append(both_steps(sampler, search, prompts, each)[0])
    assert_equal_steps(*steps)


@pytest.mark.parametrize("value", [float("nan"), INF])
@pytest.mark.parametrize("sampler", [*GREEDY, *BEAMS], ids=make_id)
@torch.no_grad()
def test_invalid_logits_are_found(sampler, value, path):
    search, prompts = make_search(sampler, Case())
    logits = make_logits(sampler, Case())
    logits[1, 0, 9] = value
    found, expected = both_steps(sampler, search, prompts, logits)
    for _, selected in (found, expected):
        assert selected.nan_or_inf.nonzero().tolist() == [[1, 0]]


@pytest.mark.gpu
@pytest.mark.parametrize("first", [0, 50256], ids=["all", "last"])
@pytest.mark.parametrize("batch", [1, 64, 65])
@pytest.mark.parametrize("sampler", [*GREEDY, *BEAMS], ids=make_id)
@torch.no_grad()
def test_tokens_of_rows_with_nan_are_in_the_vocabulary(sampler, batch, first):
    case = Case(vocab=50257)
    search, prompts = make_search(sampler, case, batch)
    logits = torch.randn(batch, sampler.width, case.vocab, device=DEVICE)
    logits[..., first:] = float("nan")
    request = DecodeRequest(sampler=sampler, max_length=6)
    selected = selection.select_next(search, logits, request, prompts)
    assert selected.nan_or_inf.all()
    tokens = selected.selection.tokens
    assert tokens.min() >= 0
    assert tokens.max() < case.vocab


@pytest.mark.parametrize(
    "sampler", [*BEAMS[:-1], pytest.param(BEAMS[-1], marks=pytest.mark.slow)], ids=make_id
)
@torch.no_grad()
def test_several_steps_of_beam_search_update_the_pool(sampler, path):
    case, ended = Case(eos_ids=(2, 3)), False
    generator = torch.Generator().manual_seed(5)
    search, prompts = make_search(sampler, case)
    for _ in range(4):
        logits = torch.randn(2, sampler.width, case.vocab, generator=generator).to(DEVICE)
        found, expected = both_steps(sampler, search, prompts, logits)
        assert_equal_steps(found, expected)
        search = expected[0]
        ended = ended or bool(search.sampler_state["scores"].isfinite().any())
    assert ended


def test_the_first_of_equal_tokens_is_selected(path):
    search, prompts = make_search(Greedy(), Case())
    logits = torch.zeros(2, 1, 11, device=DEVICE)
    logits[..., [4, 9]] = 1.0
    for _, selected in both_steps(Greedy(), search, prompts, logits):
        assert selected.selection.tokens.tolist() == [[4], [4]]


class OtherBeam(Beam):
    """A subclass can select in another way."""


def test_subclasses_use_the_reference():
    assert known_sampler(Beam()).step is not None
    assert known_sampler(OtherBeam()).step is None
    assert known_sampler(OtherBeam()).keeps_items
