"""Steps on tensors of fixed address, compared with the ordinary loop."""

from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice

import pytest
import torch

import zoo
from zoo.generation.loop import DecodingLoop
from zoo.generation.prompts import build_prompts
from zoo.plugin import Decoder, DecodeRequest, GenerationInputs, Memory, State
from zoo.testing.tiny import TinyDecoder, TinyEmbedding
from zoo_fast.generation.captured_steps import CapturedSteps
from zoo_fast.generation.fast_loop import FastLoop
from zoo_fast.generation.kept_steps import why_not_captured
from zoo_fast.transformer.cached_state import SLOTS, CachedState
from zoo_fast.transformer.example_calls import decoder_calls
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.greedy import Greedy
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.top_k import TopK

# Of NumPy, in the interpreter of Triton.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SAMPLERS = [Greedy(), Beam(), DiverseBeam(), TopK(k=3)]
PROMPT = torch.tensor([[1, 3, 4], [1, 5, 0]])


def make_inputs(prompt=None, seed=0):
    torch.manual_seed(seed)
    decoder = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4)
    torch.nn.init.normal_(decoder.out.weight, std=2.0)
    items = 2 if prompt is None else len(prompt)
    mask = torch.ones(items, 1, dtype=torch.bool)
    memory = Memory(torch.ones(items, 1, 4), mask, torch.randn(items, 4))
    return GenerationInputs(decoder, memory, bos=1, eos=2, pad=0, prompt=prompt)


def make_request(sampler, filters=()):
    generator = torch.Generator().manual_seed(0)
    return DecodeRequest(sampler=sampler, max_length=9, filters=filters, generator=generator)


@pytest.mark.parametrize("filters", [[], [RepetitionPenalty()]], ids=["plain", "filtered"])
@pytest.mark.parametrize("prompt", [None, PROMPT], ids=["no-prompt", "prompt"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
def test_steps_equal_those_of_the_loop(sampler, prompt, filters):
    compare_with_loop(sampler, prompt, filters)


@pytest.mark.parametrize("items", [1, 2])
@pytest.mark.parametrize("sampler", [Greedy(), Beam(width=3)], ids=lambda sampler: sampler.name)
@pytest.mark.skipif(torch.cuda.is_available(), reason="Triton does not interpret with a GPU")
def test_kernels_equal_the_loop(sampler, items, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    compare_with_loop(sampler, PROMPT[:items], [])


def make_loop(inputs, request):
    prompts = build_prompts(inputs, request.max_length)
    return DecodingLoop(
        decoder=inputs.decoder, memory=inputs.memory, prompts=prompts, request=request
    )


@torch.no_grad()
def compare_with_loop(sampler, prompt, filters):
    steps, reused = None, False
    for seed in (0, 1):  # the second time, the tensors of the first one are reused
        inputs, request = make_inputs(prompt, seed), make_request(sampler, filters)
        loop = make_loop(inputs, request)
        state = loop.first()
        for _ in range(6):
            state = loop.step(state)
        expected = state.search
        state_after = request.generator.get_state()

        request = make_request(sampler, filters)
        if steps is None:
            decoder = inputs.decoder
            first = make_loop(inputs, request).first()
            steps = CapturedSteps(decoder, request, first)
        else:
            reused = True
            decoder.load_state_dict(inputs.decoder.state_dict())
            first = make_loop(inputs, request).first()
        with closing(steps.run(request, first)) as run:
            *_, found = islice(run, 6)
        found = found.search

        assert found.cur_len == expected.cur_len
        for name in ("tokens", "finished", "num_generated"):
            assert torch.equal(getattr(found, name), getattr(expected, name)), name
        torch.testing.assert_close(found.scores, expected.scores, rtol=1e-6, atol=1e-6)
        compare_pools(found.sampler_state, expected.sampler_state)
        assert torch.equal(request.generator.get_state(), state_after)
    assert reused


@pytest.mark.parametrize("items", [1, 2])
@pytest.mark.skipif(torch.cuda.is_available(), reason="Triton does not interpret with a GPU")
@torch.no_grad()
def test_caches_that_are_not_reordered_follow_the_hypotheses(items, monkeypatch):
    pytest.importorskip("triton")
    torch.manual_seed(0)
    decoder, memory, _ = next(decoder_calls(torch.float32))
    memory = Memory(memory.states[:items], memory.mask[:items], memory.summary[:items])
    torch.nn.init.normal_(decoder.embedding.table.weight, std=2.0)
    request = make_request(Beam(width=3))
    loop = make_loop(GenerationInputs(decoder, memory, bos=1, eos=2, pad=0), request)
    *before, expected = islice(loop.steps(), 7)
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    zoo.accelerate(decoder)
    first = loop.first()
    assert isinstance(first.state, CachedState)
    steps = CapturedSteps(decoder, request, first)
    with closing(steps.run(request, first)) as run:
        *_, found = islice(run, len(before))
    assert found.state.rows[SLOTS][:, : len(before)].unique().numel() > 1
    assert torch.equal(found.search.tokens, expected.search.tokens)
    torch.testing.assert_close(found.search.scores, expected.search.scores, rtol=1e-5, atol=1e-5)


def compare_pools(found, expected):
    """Compare finished hypotheses; the tokens of places without one are not defined."""
    assert found.keys() == expected.keys()
    if expected:
        torch.testing.assert_close(found["scores"], expected["scores"], rtol=1e-6, atol=1e-6)
        has_score = ~expected["scores"].isneginf()
        assert torch.equal(found["tokens"][has_score], expected["tokens"][has_score])
        assert torch.equal(found["done"], expected["done"])


class Growing(Decoder):
    """Concatenates the embeddings of all tokens."""

    name = "growing"

    def __init__(self):
        super().__init__()
        self.embedding, self.out = TinyEmbedding(), torch.nn.Linear(TinyEmbedding().dim, 7)

    def start(self, memory, *, steps):
        return State({"keys": memory.states.new_zeros(len(memory.mask), 0, self.embedding.dim)})

    def step(self, tokens, state):
        keys = torch.cat([state.per_hypothesis["keys"], self.embedding(tokens)], dim=1)
        logits = self.out(keys.cumsum(1)[:, -tokens.shape[1] :])
        return logits, state.updated({"keys": keys})


@dataclass(frozen=True)
class Counted(State):
    """A state with the number of steps."""

    count: int = 0


class Counting(Growing):
    """Depends on the number of steps."""

    name = "counting"
    first_change = 0

    def start(self, memory, *, steps):
        return Counted({"h": memory.states.new_zeros(len(memory.mask), self.embedding.dim)})

    def step(self, tokens, state):
        h, count, logits = state.per_hypothesis["h"], state.count, []
        for x in self.embedding(tokens).unbind(1):
            count += 1
            h = torch.tanh(h + x * (1.0 if count < 4 else -3.0))
            logits.append(self.out(h))
        if count >= self.first_change:
            state = replace(state, count=count)
        return torch.stack(logits, 1), state.updated({"h": h})


class LateCounting(Counting):
    """Counts from the fourth step on, which depends on the values of tensors before."""

    name = "late-counting"
    first_change = 4

    def start(self, memory, *, steps):
        state = super().start(memory, steps=steps)
        count = memory.mask.new_zeros(len(memory.mask), dtype=torch.long)
        return state.updated({**state.per_hypothesis, "count": count})

    def step(self, tokens, state):
        count = state.per_hypothesis["count"]
        logits, after = super().step(tokens, replace(state, count=int(count[0])))
        late = replace(after, count=0) if after.count < self.first_change else after
        return logits, late.updated({**late.per_hypothesis, "count": count + tokens.shape[1]})


@pytest.mark.parametrize("filters", [[], [RepetitionPenalty()]], ids=["plain", "filtered"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@pytest.mark.parametrize("cls", [Growing, Counting, LateCounting], ids=lambda cls: cls.name)
@torch.no_grad()
def test_a_state_that_changes_its_form_continues_with_ordinary_steps(cls, sampler, filters):
    torch.manual_seed(0)
    decoder = cls().eval()
    torch.nn.init.normal_(decoder.out.weight, std=2.0)
    inputs = replace(make_inputs(PROMPT), decoder=decoder)
    request = make_request(sampler, filters)
    loop = make_loop(inputs, request)
    state = loop.first()
    expected = [state := loop.step(state) for _ in range(6)]
    state_after = request.generator.get_state()

    request = make_request(sampler, filters)
    first = make_loop(inputs, request).first()
    steps = CapturedSteps(decoder, request, first)
    with closing(steps.run(request, first)) as run:
        for other, found in zip(expected, run, strict=False):
            length = other.search.cur_len
            assert found.search.cur_len == length
            tokens, others = found.search.tokens, other.search.tokens
            assert torch.equal(tokens[..., :length], others[..., :length])
            for name in ("scores", "finished", "num_generated"):
                torch.testing.assert_close(getattr(found.search, name), getattr(other.search, name))
            assert found.invalid == other.invalid
    assert torch.equal(request.generator.get_state(), state_after)
    assert list(steps.run(request, first)) == []
    assert not steps.is_running


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("cls", [Growing, Counting, LateCounting], ids=lambda cls: cls.name)
@torch.no_grad()
def test_states_that_change_their_form_on_a_gpu(cls):
    torch.manual_seed(0)
    inputs = make_inputs(PROMPT)
    parts = inputs.memory.states, inputs.memory.mask, inputs.memory.summary
    memory = Memory(*(part.cuda() for part in parts))
    inputs = replace(inputs, decoder=cls().eval().cuda(), memory=memory)
    for sampler in (Greedy(), Beam(width=2)):
        request = DecodeRequest(sampler=sampler, max_length=9)
        tokens, scores = make_loop(inputs, request).run()
        for _ in range(4):
            found, found_scores = FastLoop(make_loop(inputs, request)).run()
            assert torch.equal(found, tokens)
            torch.testing.assert_close(found_scores, scores)


@torch.no_grad()
def test_a_state_of_another_form_uses_ordinary_steps():
    inputs, request = make_inputs(), make_request(Greedy())
    first = make_loop(inputs, request).first()
    steps = CapturedSteps(inputs.decoder, request, first)
    state = Counted(first.state.per_hypothesis, first.state.per_source)
    assert list(steps.run(request, replace(first, state=state))) == []


@torch.no_grad()
def test_a_second_call_does_not_use_the_tensors_of_a_running_one():
    inputs, request = make_inputs(), make_request(Greedy())
    first = make_loop(inputs, request).first()
    steps = CapturedSteps(inputs.decoder, request, first)
    with closing(steps.run(request, first)) as run:
        next(run)
        assert steps.is_running
        assert list(steps.run(request, first)) == []
    assert not steps.is_running
    with closing(steps.run(request, first)) as run:
        assert next(run).search.cur_len == first.search.cur_len + 1


@torch.no_grad()
def test_an_interrupt_before_the_first_step_does_not_change_the_generator(monkeypatch):
    inputs, request = make_inputs(), make_request(TopK(k=3))
    first = make_loop(inputs, request).first()
    steps = CapturedSteps(inputs.decoder, request, first)

    def interrupt(tensors):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(steps, "_write", interrupt)
        before = request.generator.get_state()
        with pytest.raises(KeyboardInterrupt):
            next(steps.run(request, first))
    assert torch.equal(request.generator.get_state(), before)
    assert not steps.is_running


def test_reasons_for_the_ordinary_loop():
    decoder = make_inputs().decoder
    gpu = torch.device("cuda")
    assert why_not_captured(decoder, torch.device("cpu"), 100) == "the device is 'cpu', not 'cuda'"
    assert why_not_captured(decoder, gpu, 100) == "the module is in training mode"
    decoder.eval()
    assert why_not_captured(decoder, gpu, 1) == "at most one token is generated"
    assert why_not_captured(decoder, gpu, 100) is None
    decoder.out.register_forward_hook(lambda *_: None)
    assert why_not_captured(decoder, gpu, 100) == "the module has hooks"
