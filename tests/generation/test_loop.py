"""Prompts, filters, streams, interrupts, and what all samplers have in common."""

import signal

import pytest
import torch

from zoo.plugin import Decoder, Filter, Memory, Sampler, State, decode, stream
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
DRAWING = [Temperature(), TopK(k=3), TopP(p=0.8), MinP(p=0.2), Typical(mass=0.8)]
ALL = [Greedy(), Beam(), DiverseBeam(), *DRAWING]


def named(sampler: Sampler) -> str:
    return sampler.name


@pytest.fixture
def decoder() -> TinyDecoder:
    torch.manual_seed(4)
    made = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4)
    torch.nn.init.normal_(made.out.weight, std=2.0)
    return made


def memory(items: int = 6) -> Memory:
    generator = torch.Generator().manual_seed(1)
    summary = torch.randn(items, 4, generator=generator)
    return Memory(summary[:, None], torch.ones(items, 1, dtype=torch.bool), summary)


def said(decoder, sampler, *, items=6, eos=EOS, max_length=9, seed=0, **options):
    return decode(
        decoder,
        memory(items),
        sampler,
        bos=BOS,
        eos=eos,
        pad=PAD,
        max_length=max_length,
        generator=torch.Generator().manual_seed(seed),
        **options,
    )


def streamed(decoder, sampler, *, seed=0, **options):
    return stream(
        decoder,
        memory(),
        sampler,
        bos=BOS,
        eos=EOS,
        pad=PAD,
        max_length=9,
        generator=torch.Generator().manual_seed(seed),
        **options,
    )


COLD = [
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
@pytest.mark.parametrize("sampler", COLD, ids=named)
def test_greedy_is_a_beam_of_one_and_any_draw_without_freedom(decoder, sampler, filters):
    greedy = said(decoder, Greedy(), items=20, filters=filters).tokens

    assert len({tuple(row) for row in greedy[:, 0].tolist()}) > 3
    assert torch.equal(said(decoder, sampler, items=20, filters=filters).tokens, greedy)


@pytest.mark.parametrize("filters", [(), (NoRepeatNgram(n=2),)])
@pytest.mark.parametrize("sampler", ALL, ids=named)
def test_nothing_but_padding_follows_an_end_and_no_padding_comes_before(decoder, sampler, filters):
    tokens = said(decoder, sampler, items=20, filters=filters).tokens

    after = (tokens == EOS).cumsum(dim=-1) - (tokens == EOS).long()
    assert ((tokens == PAD) == (after > 0)).all()
    assert (tokens == EOS).any()


@pytest.mark.parametrize("sampler", ALL, ids=named)
def test_one_seed_says_one_thing(decoder, sampler):
    first, again = said(decoder, sampler, seed=5), said(decoder, sampler, seed=5)

    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.scores, again.scores)
    if sampler in DRAWING:
        assert not torch.equal(first.tokens, said(decoder, sampler, seed=6).tokens)


@pytest.mark.parametrize("sampler", [Greedy(), *DRAWING], ids=named)
def test_a_stream_yields_what_decode_returns(decoder, sampler):
    steps = list(streamed(decoder, sampler))

    whole = said(decoder, sampler).tokens
    assert all(step.shape == (6, 1) for step in steps)
    assert torch.equal(torch.stack(steps, dim=-1), whole)


def test_a_stream_gives_each_token_before_the_next_is_asked_for(decoder):
    calls = []
    step = decoder.step
    decoder.step = lambda tokens, state: (calls.append(1), step(tokens, state))[1]

    tokens = streamed(decoder, Greedy())
    assert not calls
    next(tokens)
    assert len(calls) == 1
    next(tokens)
    assert len(calls) == 2
    tokens.close()


def test_a_stream_leaves_gradients_on_for_whoever_reads_it(decoder):
    for step in streamed(decoder, Greedy()):
        assert torch.is_grad_enabled()
        assert not step.requires_grad


class Interrupted(TinyDecoder):
    """Is interrupted from the keyboard at its third step."""

    calls = 0

    def step(self, tokens, state):
        self.calls += 1
        if self.calls == 3:
            signal.raise_signal(signal.SIGINT)
        return super().step(tokens, state)


@pytest.fixture
def keyboard():
    """Ctrl-C reaches Python, also where the tests run in the background, deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("keyboard")
@pytest.mark.parametrize("sampler", ALL, ids=named)
def test_an_interrupt_stops_at_once_and_leaves_nothing_behind(decoder, sampler):
    torch.manual_seed(4)
    interrupted = Interrupted(embedding=TinyEmbedding(), summary_dim=4)
    interrupted.load_state_dict(decoder.state_dict())

    with pytest.raises(KeyboardInterrupt):
        said(interrupted, sampler)

    assert interrupted.calls == 3
    assert torch.is_grad_enabled()
    again, fresh = said(interrupted, sampler), said(decoder, sampler)
    assert torch.equal(again.tokens, fresh.tokens)


@pytest.mark.usefixtures("keyboard")
def test_an_interrupted_stream_has_given_what_it_had(decoder):
    interrupted = Interrupted(embedding=TinyEmbedding(), summary_dim=4)
    interrupted.load_state_dict(decoder.state_dict())
    got = []

    with pytest.raises(KeyboardInterrupt):
        got.extend(streamed(interrupted, Greedy()))

    whole = said(decoder, Greedy()).tokens
    assert torch.equal(torch.stack(got, dim=-1), whole[..., :2])
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("sampler", [Greedy(), Beam(), DiverseBeam()], ids=named)
def test_prompts_of_unequal_lengths_are_continued_as_each_alone(decoder, sampler):
    rows = [[BOS], [BOS, 4, 5, 3], [BOS, 6], [BOS, EOS, 3], [BOS, 3, 3, 3, 3], [BOS, 5]]
    prompt = torch.tensor([row + [PAD] * (5 - len(row)) for row in rows])

    together = said(decoder, sampler, prompt=prompt)

    for item, row in enumerate(rows):
        whole = memory()
        alone = decode(
            decoder,
            Memory(*(part[item : item + 1] for part in (whole.states, whole.mask, whole.summary))),
            sampler,
            bos=BOS,
            eos=EOS,
            pad=PAD,
            max_length=9,
            prompt=torch.tensor([row]),
        )
        T = alone.tokens.shape[-1]
        assert torch.equal(together.tokens[item, :, :T], alone.tokens[0])
        assert (together.tokens[item, :, T:] == PAD).all()
        torch.testing.assert_close(together.scores[item], alone.scores[0])


def test_a_prompt_of_the_start_token_is_no_prompt(decoder):
    prompt = torch.full((6, 1), BOS)

    assert torch.equal(
        said(decoder, Greedy(), prompt=prompt).tokens, said(decoder, Greedy()).tokens
    )


def test_a_stream_pads_an_item_until_its_prompt_is_read(decoder):
    prompt = torch.tensor([[BOS, 3, 4]] + [[BOS, PAD, PAD]] * 5)

    steps = torch.stack(list(streamed(decoder, Greedy(), prompt=prompt)), dim=-1)

    whole = said(decoder, Greedy(), prompt=prompt).tokens
    assert steps[0, 0, :2].tolist() == [PAD, PAD]
    longest = min(whole.shape[-1], steps.shape[-1] - 2)
    assert torch.equal(steps[0, 0, 2:][:longest], whole[0, 0, :longest])
    assert torch.equal(steps[1:, :, : whole.shape[-1]], whole[1:, :, : steps.shape[-1]])


class Remembers(Filter):
    """Notes what it was shown."""

    name = "remembers"

    def __init__(self) -> None:
        self.shown = []

    def forward(self, logprobs, tokens):
        self.shown.append((logprobs.clone(), tokens.clone()))
        return logprobs


def test_filters_see_the_prompt_and_all_that_followed_in_their_order(decoder):
    first, second = Remembers(), Remembers()
    prompt = torch.tensor([[BOS, 3], [BOS, 4], [BOS, 5], [BOS, 6], [BOS, 3], [BOS, 3]])

    decoded = said(
        decoder, Greedy(), prompt=prompt, filters=[first, RepetitionPenalty(penalty=9.0), second]
    )

    for step, (_, tokens) in enumerate(first.shown):
        whole = torch.cat([prompt[:, None], decoded.tokens], dim=-1)
        assert torch.equal(tokens, whole[..., : 2 + step])
    before, after = first.shown[0][0], second.shown[0][0]
    assert (after < before).sum() == 12  # two tokens of each prompt, no other
    assert (after <= before).all()


def test_one_hypothesis_is_filtered_by_logits_and_several_by_log_probabilities(decoder):
    logits, logprobs = Remembers(), Remembers()

    said(decoder, Greedy(), filters=[logits])
    said(decoder, Beam(width=2), filters=[logprobs])

    raw, normal = logits.shown[0][0][:, 0], logprobs.shown[0][0][:, 0]
    assert not torch.allclose(raw.exp().sum(dim=-1), torch.ones(6))
    torch.testing.assert_close(normal, raw.log_softmax(dim=-1))


def test_several_end_tokens_each_end(decoder):
    tokens = said(decoder, Temperature(temperature=3.0), items=30, eos=(EOS, 5)).tokens

    ends = (tokens == EOS) | (tokens == 5)
    after = ends.cumsum(dim=-1) - ends.long()
    assert ((tokens == PAD) == (after > 0)).all()
    assert (tokens == EOS).any()
    assert (tokens == 5).any()


def test_without_end_tokens_generation_goes_to_max_length(decoder):
    assert said(decoder, Greedy(), eos=()).tokens.shape == (6, 1, 9)
    assert said(decoder, Beam(), eos=()).tokens.shape == (6, 4, 9)


class OnlySources(Decoder):
    """Counts upward; has no source and no weights."""

    name = "counts"

    def start(self, memory: Memory, *, steps: int) -> State:
        assert memory.states.shape == (3, 0, 0)
        assert memory.mask.shape == memory.summary.shape == (3, 0)
        return State({"nothing": memory.summary})

    def step(self, tokens, state):
        return torch.nn.functional.one_hot((tokens + 1) % 9, 9) * 50.0, state


def test_a_decoder_without_a_source_gets_an_empty_memory():
    prompt = torch.tensor([[3], [5], [7]])

    decoded = decode(
        OnlySources(),
        Memory.empty(3),
        Greedy(),
        bos=1,
        eos=8,
        pad=0,
        max_length=9,
        prompt=prompt,
    )

    assert decoded.best() == [[4, 5, 6, 7, 8], [6, 7, 8, 0, 0], [8, 0, 0, 0, 0]]


def test_a_sampler_needs_no_more_than_a_distribution(decoder):
    class Even(Sampler):
        name = "even"

        def distribution(self, logprobs):
            return (logprobs > -torch.inf).to(logprobs)

    tokens = said(decoder, Even(), items=200, eos=()).tokens
    counts = torch.bincount(tokens.flatten(), minlength=7)
    assert counts[PAD] == 0
    assert counts[1:].min() > 240  # of 300 expected


def test_a_sampler_with_neither_distribution_nor_choice_says_so(decoder):
    class Idle(Sampler):
        name = "idle"

    with pytest.raises(NotImplementedError, match="Idle has neither distribution nor select"):
        said(decoder, Idle())
    with pytest.raises(NotImplementedError, match="Idle has neither"):
        Idle().distribution(torch.zeros(3))
