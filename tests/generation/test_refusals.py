"""Bad input is refused with a sentence: no hang, no wrong answer."""

import pytest
import torch

from zoo import ZooError
from zoo.plugin import Filter, Memory, decode, stream
from zoo.testing.tiny import TinyDecoder, TinyEmbedding
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.greedy import Greedy
from zoo_sampling.no_repeat_ngram import NoRepeatNgram
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_p import TopP
from zoo_sampling.typical import Typical

SAMPLERS = [Greedy(), Beam(), DiverseBeam(), Temperature(temperature=0.7), TopP(), Typical()]


def tiny(cls=TinyDecoder):
    torch.manual_seed(0)
    return cls(embedding=TinyEmbedding(), summary_dim=4)


def run(sampler=None, *, decoder=None, call=decode, **options):
    settings = {"bos": 1, "eos": 2, "pad": 0, "max_length": 6, **options}
    memory = Memory(torch.zeros(2, 1, 4), torch.ones(2, 1, dtype=torch.bool), torch.ones(2, 4))
    return call(decoder or tiny(), memory, sampler or Greedy(), **settings)


REFUSED = [
    ({"max_length": 0}, "max_length is 0; it must be at least 1"),
    ({"bos": 7}, "the prompt has token 7, outside the vocabulary of 7"),
    ({"bos": -1}, "bos is -1; a token is a number from 0"),
    ({"eos": 9}, "eos is 9, outside the vocabulary of 7"),
    ({"eos": (2, -4)}, "eos is -4; a token is a number from 0"),
    ({"eos": (2, 70)}, "eos is 70, outside the vocabulary of 7"),
    ({"pad": 8}, "pad is 8, outside the vocabulary of 7"),
    ({"pad": -100}, "pad is -100; a token is a number from 0"),
    ({"prompt": torch.tensor([[1, 7], [1, 3]])}, "the prompt has token 7, outside the vocabulary"),
    ({"prompt": torch.tensor([[1], [-1]])}, "the prompt has token -1; a token is a number from 0"),
    ({"prompt": torch.zeros(2, 0, dtype=torch.long)}, "the prompt of item 0 is empty"),
    ({"prompt": torch.tensor([[1, 3], [0, 0]])}, "the prompt of item 1 is empty"),
    ({"prompt": torch.tensor([1, 3])}, r"must be token numbers \[B, P\], one row for each of 2"),
    ({"prompt": torch.tensor([[1, 3]])}, r"the prompt is torch.int64 \[1, 2\]"),
    ({"prompt": torch.tensor([[1.0], [1.0]])}, r"the prompt is torch.float32 \[2, 1\]"),
    (
        {"prompt": torch.ones(2, 3).long(), "lengths": torch.tensor([1, 4])},
        "a length of 4 is told of prompts of 3 tokens",
    ),
    (
        {"prompt": torch.ones(2, 3).long(), "lengths": torch.tensor([1, 0])},
        "the prompt of item 1 is empty",
    ),
    (
        {"prompt": torch.ones(2, 3).long(), "lengths": torch.ones(2)},
        r"lengths are torch.float32 \[2\]; they must be whole numbers \[B\], one for each of 2",
    ),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
@pytest.mark.parametrize("call", [decode, stream])
def test_what_cannot_be_asked_for_is_refused_before_a_step(call, options, message):
    decoder = tiny()
    decoder.step = None

    with pytest.raises(ZooError, match=message):
        run(decoder=decoder, call=call, **options)


def test_tokens_outside_are_found_though_the_decoder_names_no_vocabulary():
    decoder = tiny()
    decoder.embedding = decoder.embedding.table  # a plain table, without a word on its size

    with pytest.raises(ZooError, match="eos is 9, outside the vocabulary of 7"):
        run(decoder=decoder, eos=9)


class Broken(TinyDecoder):
    """Says NaN for the second item, from its third step."""

    calls = 0
    value = float("nan")

    def step(self, tokens, state):
        self.calls += 1
        logits, state = super().step(tokens, state)
        logits[..., 2] = -99.0
        if self.calls >= 3:
            logits[len(logits) // 2 :, :, 3] = self.value
        return logits, state


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
def test_logits_that_are_no_numbers(sampler, value):
    decoder = tiny(Broken)
    decoder.value = value

    with pytest.raises(ZooError, match=r"the decoder's logits are no numbers \(.*\), by token 3"):
        run(sampler, decoder=decoder)
    assert decoder.calls == 3


def test_logits_that_are_no_numbers_in_a_stream():
    tokens = run(decoder=tiny(Broken), call=stream)

    assert len([next(tokens), next(tokens)]) == 2
    with pytest.raises(ZooError, match="no numbers"):
        next(tokens)


def test_an_item_that_has_ended_may_say_anything():
    class EndsThenRaves(TinyDecoder):
        calls = 0

        def step(self, tokens, state):
            self.calls += 1
            logits, state = super().step(tokens, state)
            logits[:1, :, 2] = 99.0
            logits[1:, :, 2] = -99.0
            if self.calls > 1:
                logits[:1] = float("nan")
            return logits, state

    assert run(decoder=tiny(EndsThenRaves)).tokens[0, 0].tolist() == [2, 0, 0, 0, 0, 0]


class Everything(Filter):
    """Forbids everything once three tokens were said."""

    name = "everything"

    def forward(self, logprobs, tokens):
        lowest = -torch.inf if tokens.shape[-1] > 3 else 0.0
        return logprobs + lowest


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
def test_filters_that_leave_nothing_to_say(sampler):
    decoder = tiny(Broken)
    decoder.value = 0.0
    with pytest.raises(ZooError, match="nothing can be said for item 0: every next"):
        run(sampler, decoder=decoder, filters=[Everything()])


def test_a_beam_returns_what_ended_before_nothing_was_left():
    # Without repetition, five of the seven tokens can be said before the end must come.
    decoded = run(Beam(width=2), filters=[NoRepeatNgram(n=1)], max_length=50)

    assert (decoded.tokens == 2).any(dim=-1).all()
    assert decoded.tokens.shape[-1] <= 6


def test_a_beam_wider_than_the_vocabulary():
    with pytest.raises(ZooError, match="a beam of 8 hypotheses is wider than the vocabulary of 7"):
        run(Beam(width=8))
    with pytest.raises(ZooError, match="a beam of 8 hypotheses is wider than the vocabulary of 7"):
        run(DiverseBeam(width=16, groups=2))
    assert run(Beam(width=7)).tokens.shape[:2] == (2, 7)
    assert run(DiverseBeam(width=14, groups=2)).tokens.shape[:2] == (2, 14)


@pytest.mark.parametrize("sampler", [Beam(), Beam(width=1), DiverseBeam()])
def test_a_beam_does_not_stream(sampler):
    with pytest.raises(ZooError, match=f"sampler '{sampler.name}' knows its answer only at the"):
        run(sampler, call=stream)


def test_a_prompt_longer_than_fits_is_for_the_decoder_to_refuse():
    class Short(TinyDecoder):
        def start(self, memory, *, steps):
            if steps > 10:
                raise ZooError(f"{steps} steps do not fit; there are 10 positions")
            return super().start(memory, steps=steps)

    prompt = torch.ones(2, 5, dtype=torch.long)
    assert run(decoder=tiny(Short), prompt=prompt).tokens.shape[-1] <= 6
    with pytest.raises(ZooError, match="11 steps do not fit"):
        run(decoder=tiny(Short), prompt=torch.ones(2, 6, dtype=torch.long))


def test_a_generator_elsewhere():
    class Elsewhere:
        device = torch.device("cuda:0")

    with pytest.raises(ZooError, match="the generator is on cuda:0, the memory on cpu"):
        run(generator=Elsewhere())
