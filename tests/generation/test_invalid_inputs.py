"""Invalid inputs raise ZooError."""

import pytest
import torch

from zoo import ZooError
from zoo.generation import stream_tokens
from zoo.plugin import DecodeRequest, Filter, GenerationInputs, Memory, decode
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


def run(
    sampler=None, *, decoder=None, call=decode, max_length=6, filters=(), generator=None, **options
):
    memory = Memory(torch.zeros(2, 1, 4), torch.ones(2, 1, dtype=torch.bool), torch.ones(2, 4))
    inputs = {"bos": 1, "eos": 2, "pad": 0, **options}
    request = DecodeRequest(
        sampler=sampler or Greedy(), max_length=max_length, filters=filters, generator=generator
    )
    return call(GenerationInputs(decoder or tiny(), memory, **inputs), request)


INVALID = [
    ({"max_length": 0}, "max_length is 0"),
    ({"bos": 7}, "prompt contains token 7,.* 7 tokens"),
    ({"bos": -1}, "bos is -1"),
    ({"eos": 9}, "eos is 9,.* 7 tokens"),
    ({"eos": (2, -4)}, "eos is -4"),
    ({"eos": (2, 70)}, "eos is 70,.* 7 tokens"),
    ({"pad": 8}, "pad is 8,.* 7 tokens"),
    ({"pad": -100}, "pad is -100"),
    ({"prompt": torch.tensor([[1, 7], [1, 3]])}, "prompt contains token 7,"),
    ({"prompt": torch.tensor([[1], [-1]])}, "prompt contains token -1"),
    ({"prompt": torch.zeros(2, 0, dtype=torch.long)}, "item 0 is empty"),
    ({"prompt": torch.tensor([[1, 3], [0, 0]])}, "item 1 is empty"),
    ({"prompt": torch.tensor([1, 3])}, r"prompt .*\[2\].*\[B, P\].*B = 2"),
    ({"prompt": torch.tensor([[1, 3]])}, r"prompt .*torch.int64.*\[1, 2\].*B = 2"),
    ({"prompt": torch.tensor([[1.0], [1.0]])}, r"prompt .*torch.float32.*\[2, 1\]"),
    (
        {"prompt": torch.ones(2, 3).long(), "lengths": torch.tensor([1, 4])},
        "lengths contains 4,.* 3 columns",
    ),
    (
        {"prompt": torch.ones(2, 3).long(), "lengths": torch.tensor([1, 0])},
        "item 1 is empty",
    ),
    (
        {"prompt": torch.ones(2, 3).long(), "lengths": torch.ones(2)},
        r"lengths .*torch.float32.*torch.int64.*\[2\]",
    ),
]


@pytest.mark.parametrize(("options", "message"), INVALID)
@pytest.mark.parametrize("call", [decode, stream_tokens])
def test_invalid_arguments_raise_before_the_first_step(call, options, message):
    decoder = tiny()
    decoder.step = None

    with pytest.raises(ZooError, match=message):
        run(decoder=decoder, call=call, **options)


def test_out_of_range_tokens_without_a_known_vocabulary_size():
    decoder = tiny()
    decoder.embedding = decoder.embedding.table  # an nn.Embedding has no vocab

    with pytest.raises(ZooError, match=r"eos is 9,.* 7 tokens"):
        run(decoder=decoder, eos=9)


class NanDecoder(TinyDecoder):
    """Return NaN for the second item, from the third step."""

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
def test_nan_or_inf_logits(sampler, value):
    decoder = tiny(NanDecoder)
    decoder.value = value

    with pytest.raises(ZooError, match=r"NaN or inf.*step 3"):
        run(sampler, decoder=decoder)
    assert decoder.calls == 3


def test_nan_logits_in_a_stream():
    tokens = run(decoder=tiny(NanDecoder), call=stream_tokens)

    assert len([next(tokens), next(tokens)]) == 2
    with pytest.raises(ZooError, match="NaN or inf"):
        next(tokens)


def test_nan_logits_of_a_finished_item_are_ignored():
    class NanAfterEnd(TinyDecoder):
        calls = 0

        def step(self, tokens, state):
            self.calls += 1
            logits, state = super().step(tokens, state)
            logits[:1, :, 2] = 99.0
            logits[1:, :, 2] = -99.0
            if self.calls > 1:
                logits[:1] = float("nan")
            return logits, state

    # A stream, since `decode` could remove the finished item from the batch.
    tokens = torch.cat(list(run(decoder=tiny(NanAfterEnd), call=stream_tokens)), dim=1)
    assert tokens[0].tolist() == [2, 0, 0, 0, 0, 0]


class MaskAll(Filter):
    """Set all logits to -inf after three tokens."""

    name = "mask-all"

    def forward(self, logprobs, tokens):
        return logprobs + (-torch.inf if tokens.shape[-1] > 3 else 0.0)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
def test_filters_that_mask_every_token(sampler):
    decoder = tiny(NanDecoder)
    decoder.value = 0.0
    with pytest.raises(ZooError, match=r"item 0.*-inf"):
        run(sampler, decoder=decoder, filters=[MaskAll()])


def test_a_beam_returns_hypotheses_that_ended_before_all_tokens_were_masked():
    # Without repetition at most five of the seven tokens precede the end token.
    decoded = run(Beam(width=2), filters=[NoRepeatNgram(n=1)], max_length=50)

    assert (decoded.tokens == 2).any(dim=-1).all()
    assert decoded.tokens.shape[-1] <= 6


def test_a_beam_wider_than_the_vocabulary():
    with pytest.raises(ZooError, match=r"8 per group.*vocabulary size.*7"):
        run(Beam(width=8))
    with pytest.raises(ZooError, match=r"8 per group.*vocabulary size.*7"):
        run(DiverseBeam(width=16, groups=2))
    assert run(Beam(width=7)).tokens.shape[:2] == (2, 7)
    assert run(DiverseBeam(width=14, groups=2)).tokens.shape[:2] == (2, 14)


@pytest.mark.parametrize("sampler", [Beam(), Beam(width=1), DiverseBeam()])
def test_a_beam_does_not_stream(sampler):
    with pytest.raises(ZooError, match=rf"'{sampler.name}'.*width {sampler.width}.*stream"):
        run(sampler, call=stream_tokens)


def test_the_decoder_rejects_a_prompt_that_is_too_long():
    class Short(TinyDecoder):
        def start(self, memory, *, steps):
            if steps > 10:
                raise ZooError(f"{steps} steps exceed the 10 positions")
            return super().start(memory, steps=steps)

    prompt = torch.ones(2, 5, dtype=torch.long)
    assert run(decoder=tiny(Short), prompt=prompt).tokens.shape[-1] <= 6
    with pytest.raises(ZooError, match="11 steps"):
        run(decoder=tiny(Short), prompt=torch.ones(2, 6, dtype=torch.long))


def test_a_generator_on_another_device():
    class CudaGenerator:
        device = torch.device("cuda:0")

    with pytest.raises(ZooError, match=r"cuda:0.*cpu"):
        run(generator=CudaGenerator())
