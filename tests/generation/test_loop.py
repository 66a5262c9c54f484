"""Prompts, filters, streaming and interrupts, with every shipped sampler."""

import signal

import pytest
import torch

from zoo.generation import stream_tokens
from zoo.plugin import (
    Decoder,
    DecodeRequest,
    Filter,
    GenerationInputs,
    Memory,
    Sampler,
    State,
    decode,
)
from zoo.testing.tiny import TinyDecoder, TinyEmbedding
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.greedy import Greedy
from zoo_sampling.min_p import MinP
from zoo_sampling.no_repeat_ngram import NoRepeatNgram
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP
from zoo_sampling.typical import Typical

PAD, BOS, EOS = 0, 1, 2
STOCHASTIC = [Temperature(), TopK(k=3), TopP(p=0.8), MinP(p=0.2), Typical(mass=0.8)]
ALL = [Greedy(), Beam(), DiverseBeam(), *STOCHASTIC]


def sampler_name(sampler: Sampler) -> str:
    return sampler.name


@pytest.fixture
def decoder() -> TinyDecoder:
    torch.manual_seed(4)
    decoder = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4)
    torch.nn.init.normal_(decoder.out.weight, std=2.0)
    return decoder


def memory(items: int = 6) -> Memory:
    generator = torch.Generator().manual_seed(1)
    summary = torch.randn(items, 4, generator=generator)
    return Memory(summary[:, None], torch.ones(items, 1, dtype=torch.bool), summary)


def run(decoder, sampler, *, call=decode, items=6, eos=EOS, prompt=None, filters=(), seed=0):
    generator = torch.Generator().manual_seed(seed)
    return call(
        GenerationInputs(decoder, memory(items), bos=BOS, eos=eos, pad=PAD, prompt=prompt),
        DecodeRequest(sampler=sampler, max_length=9, filters=filters, generator=generator),
    )


def run_stream(decoder, sampler, **options):
    return run(decoder, sampler, call=stream_tokens, **options)


DETERMINISTIC = [
    Beam(width=1),
    Beam(width=1, early_stopping=True),
    Beam(width=1, length_penalty=0.0),
    DiverseBeam(width=1, groups=1),
    Temperature(temperature=1e-30),
    TopK(k=1),
    TopK(k=3, temperature=1e-6),
    TopP(p=1e-6),
    TopP(p=1.0, temperature=1e-6),
    MinP(p=1.0),
    MinP(p=0.5, temperature=1e-6),
    Typical(mass=0.5, temperature=1e-6),
]


@pytest.mark.parametrize("filters", [(), (RepetitionPenalty(penalty=1.5), NoRepeatNgram(n=2))])
@pytest.mark.parametrize("sampler", DETERMINISTIC, ids=sampler_name)
def test_samplers_without_randomness_equal_greedy(decoder, sampler, filters):
    greedy = run(decoder, Greedy(), items=20, filters=filters).tokens

    assert len({tuple(row) for row in greedy[:, 0].tolist()}) > 3
    assert torch.equal(run(decoder, sampler, items=20, filters=filters).tokens, greedy)


@pytest.mark.parametrize("filters", [(), (NoRepeatNgram(n=2),)])
@pytest.mark.parametrize("sampler", ALL, ids=sampler_name)
def test_padding_follows_the_end_token_only(decoder, sampler, filters):
    tokens = run(decoder, sampler, items=20, filters=filters).tokens

    after = (tokens == EOS).cumsum(dim=-1) - (tokens == EOS).long()
    assert ((tokens == PAD) == (after > 0)).all()
    assert (tokens == EOS).any()


@pytest.mark.parametrize("sampler", ALL, ids=sampler_name)
def test_the_same_seed_gives_the_same_output(decoder, sampler):
    first, again = run(decoder, sampler, seed=5), run(decoder, sampler, seed=5)

    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.scores, again.scores)
    if sampler in STOCHASTIC:
        assert not torch.equal(first.tokens, run(decoder, sampler, seed=6).tokens)


@pytest.mark.parametrize("sampler", [Greedy(), *STOCHASTIC], ids=sampler_name)
def test_a_stream_yields_the_tokens_of_decode(decoder, sampler):
    steps = list(run_stream(decoder, sampler))

    tokens = run(decoder, sampler).tokens
    assert all(step.shape == (6, 1) for step in steps)
    assert torch.equal(torch.stack(steps, dim=-1), tokens)


def test_a_stream_computes_one_step_per_token(decoder):
    calls = []
    step = decoder.step
    decoder.step = lambda tokens, state: (calls.append(1), step(tokens, state))[1]

    tokens = run_stream(decoder, Greedy())
    assert not calls
    next(tokens)
    assert len(calls) == 1
    next(tokens)
    assert len(calls) == 2
    tokens.close()


def test_a_stream_does_not_disable_gradients_for_the_caller(decoder):
    for step in run_stream(decoder, Greedy()):
        assert torch.is_grad_enabled()
        assert not step.requires_grad


class Interrupted(TinyDecoder):
    """Raise SIGINT at the third step."""

    calls = 0

    def step(self, tokens, state):
        self.calls += 1
        if self.calls == 3:
            signal.raise_signal(signal.SIGINT)
        return super().step(tokens, state)


@pytest.fixture
def sigint():
    """Install Python's SIGINT handler; background processes ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("sigint")
@pytest.mark.parametrize("sampler", ALL, ids=sampler_name)
def test_an_interrupt_stops_decoding_and_leaves_no_state(decoder, sampler):
    torch.manual_seed(4)
    interrupted = Interrupted(embedding=TinyEmbedding(), summary_dim=4)
    interrupted.load_state_dict(decoder.state_dict())

    with pytest.raises(KeyboardInterrupt):
        run(interrupted, sampler)

    assert interrupted.calls == 3
    assert torch.is_grad_enabled()
    assert torch.equal(run(interrupted, sampler).tokens, run(decoder, sampler).tokens)


@pytest.mark.usefixtures("sigint")
def test_an_interrupted_stream_has_yielded_the_tokens_before(decoder):
    interrupted = Interrupted(embedding=TinyEmbedding(), summary_dim=4)
    interrupted.load_state_dict(decoder.state_dict())
    steps = []

    with pytest.raises(KeyboardInterrupt):
        steps.extend(run_stream(interrupted, Greedy()))

    tokens = run(decoder, Greedy()).tokens
    assert torch.equal(torch.stack(steps, dim=-1), tokens[..., :2])
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("sampler", [Greedy(), Beam(), DiverseBeam()], ids=sampler_name)
def test_a_batch_of_prompts_of_different_lengths_equals_single_prompts(decoder, sampler):
    rows = [[BOS], [BOS, 4, 5, 3], [BOS, 6], [BOS, EOS, 3], [BOS, 3, 3, 3, 3], [BOS, 5]]
    prompt = torch.tensor([row + [PAD] * (5 - len(row)) for row in rows])

    batched = run(decoder, sampler, prompt=prompt)

    for item, row in enumerate(rows):
        full = memory()
        one = Memory(*(part[item : item + 1] for part in (full.states, full.mask, full.summary)))
        prompt = torch.tensor([row])
        single = decode(
            GenerationInputs(decoder, one, bos=BOS, eos=EOS, pad=PAD, prompt=prompt),
            DecodeRequest(sampler=sampler, max_length=9),
        )
        T = single.tokens.shape[-1]
        assert torch.equal(batched.tokens[item, :, :T], single.tokens[0])
        assert (batched.tokens[item, :, T:] == PAD).all()
        torch.testing.assert_close(batched.scores[item], single.scores[0])


def test_a_prompt_of_the_start_token_is_the_default(decoder):
    prompt = torch.full((6, 1), BOS)

    assert torch.equal(run(decoder, Greedy(), prompt=prompt).tokens, run(decoder, Greedy()).tokens)


def test_a_stream_pads_an_item_until_its_prompt_is_consumed(decoder):
    prompt = torch.tensor([[BOS, 3, 4]] + [[BOS, PAD, PAD]] * 5)

    steps = torch.stack(list(run_stream(decoder, Greedy(), prompt=prompt)), dim=-1)

    tokens = run(decoder, Greedy(), prompt=prompt).tokens
    assert steps[0, 0, :2].tolist() == [PAD, PAD]
    longest = min(tokens.shape[-1], steps.shape[-1] - 2)
    assert torch.equal(steps[0, 0, 2:][:longest], tokens[0, 0, :longest])
    assert torch.equal(steps[1:, :, : tokens.shape[-1]], tokens[1:, :, : steps.shape[-1]])


class RecordingFilter(Filter):
    """Record the inputs."""

    name = "recording"

    def __init__(self) -> None:
        self.calls = []

    def forward(self, logprobs, tokens):
        self.calls.append((logprobs.clone(), tokens.clone()))
        return logprobs


def test_filters_receive_all_tokens_and_apply_in_order(decoder):
    first, second = RecordingFilter(), RecordingFilter()
    prompt = torch.tensor([[BOS, 3], [BOS, 4], [BOS, 5], [BOS, 6], [BOS, 3], [BOS, 3]])

    decoded = run(
        decoder,
        Greedy(),
        eos=(),  # items that are done could be removed from the batch
        prompt=prompt,
        filters=[first, RepetitionPenalty(penalty=9.0), second],
    )

    for step, (_, tokens) in enumerate(first.calls):
        expected = torch.cat([prompt[:, None], decoded.tokens], dim=-1)
        assert torch.equal(tokens, expected[..., : 2 + step])
    before, after = first.calls[0][0], second.calls[0][0]
    assert (after < before).sum() == 12  # two tokens of each prompt
    assert (after <= before).all()


def test_filters_receive_logits_for_one_hypothesis_and_logprobs_for_several(decoder):
    logits, logprobs = RecordingFilter(), RecordingFilter()

    run(decoder, Greedy(), filters=[logits])
    run(decoder, Beam(width=2), filters=[logprobs])

    raw, normalized = logits.calls[0][0][:, 0], logprobs.calls[0][0][:, 0]
    assert not torch.allclose(raw.exp().sum(dim=-1), torch.ones(6))
    torch.testing.assert_close(normalized, raw.log_softmax(dim=-1))


def test_multiple_end_tokens(decoder):
    tokens = run(decoder, Temperature(temperature=3.0), items=30, eos=(EOS, 5)).tokens

    ends = (tokens == EOS) | (tokens == 5)
    after = ends.cumsum(dim=-1) - ends.long()
    assert ((tokens == PAD) == (after > 0)).all()
    assert (tokens == EOS).any()
    assert (tokens == 5).any()


def test_without_end_tokens_all_items_have_max_length(decoder):
    assert run(decoder, Greedy(), eos=()).tokens.shape == (6, 1, 9)
    assert run(decoder, Beam(), eos=()).tokens.shape == (6, 4, 9)


class CountingDecoder(Decoder):
    """Predict the last token plus one, without a source."""

    name = "counting"

    def start(self, memory: Memory, *, steps: int) -> State:
        assert memory.states.shape == (3, 0, 0)
        assert memory.mask.shape == memory.summary.shape == (3, 0)
        return State({"summary": memory.summary})

    def step(self, tokens, state):
        return torch.nn.functional.one_hot((tokens + 1) % 9, 9) * 50.0, state


def test_a_decoder_with_an_empty_memory():
    prompt = torch.tensor([[3], [5], [7]])

    decoded = decode(
        GenerationInputs(CountingDecoder(), Memory.empty(3), bos=1, eos=8, pad=0, prompt=prompt),
        DecodeRequest(sampler=Greedy(), max_length=9),
    )

    assert decoded.best() == [[4, 5, 6, 7, 8], [6, 7, 8, 0, 0], [8, 0, 0, 0, 0]]


def test_a_sampler_defined_by_its_distribution(decoder):
    class Uniform(Sampler):
        name = "uniform"

        def distribution(self, logprobs):
            return (logprobs > -torch.inf).to(logprobs)

    tokens = run(decoder, Uniform(), items=200, eos=()).tokens
    counts = torch.bincount(tokens.flatten(), minlength=7)
    assert counts[PAD] == 0
    assert counts[1:].min() > 240  # of 300 expected


def test_a_sampler_without_distribution_and_select_raises(decoder):
    class Empty(Sampler):
        name = "empty"

    with pytest.raises(NotImplementedError, match=r"Empty.*distribution.*select"):
        run(decoder, Empty())
    with pytest.raises(NotImplementedError, match=r"Empty.*distribution"):
        Empty().distribution(torch.zeros(3))
