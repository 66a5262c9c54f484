"""`decode` returns the tokens of ``transformers.generate`` for the same weights.

The default length penalty of transformers is 1.
"""

import pytest
import torch
from hf_decoder_kit import BOS, EOS, PAD, Gpt2Decoder, MarianDecoder, gpt2, marian, prompts

from zoo.plugin import DecodeRequest, GenerationInputs, Memory, decode
from zoo_sampling.beam import Beam
from zoo_sampling.greedy import Greedy
from zoo_sampling.no_repeat_ngram import NoRepeatNgram
from zoo_sampling.repetition_penalty import RepetitionPenalty

MAX_LENGTH = 16


def generate_transformers(prompt, *, eos=EOS, pad=PAD, n_best=1, **options):
    """Return tokens [B, N, T] without the prompt, and scores or None."""
    if pad != eos:
        options["suppress_tokens"] = [pad]  # decode never selects padding before the end
    out = gpt2().generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=MAX_LENGTH,
        do_sample=False,
        eos_token_id=eos,
        pad_token_id=pad,
        num_return_sequences=n_best,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    tokens = out.sequences[:, prompt.shape[1] :].unflatten(0, (-1, n_best))
    scores = out.get("sequences_scores")
    return tokens, None if scores is None else scores.unflatten(0, (-1, n_best))


def generate_zoo(prompt, sampler, *, eos=EOS, pad=PAD, filters=()):
    memory = Memory.empty(len(prompt))
    inputs = GenerationInputs(
        Gpt2Decoder(model=gpt2()), memory, bos=BOS, eos=eos, pad=pad, prompt=prompt
    )
    return decode(inputs, DecodeRequest(sampler=sampler, max_length=MAX_LENGTH, filters=filters))


def share_ended(tokens):
    """Return the share of hypotheses with an end token before the last position."""
    return (tokens[..., :-1] == EOS).any(dim=-1).float().mean()


def test_greedy_on_fifty_prompts():
    tokens, _ = generate_transformers(prompts())

    assert 0.2 < share_ended(tokens) < 0.9
    assert torch.equal(generate_zoo(prompts(), Greedy()).tokens, tokens)


@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@pytest.mark.parametrize(
    "length_penalty",
    [*(pytest.param(value, marks=pytest.mark.slow) for value in (-1.0, 1.0, 2.0)), 0.0, 0.6],
)
def test_beam_of_four_on_fifty_prompts(length_penalty, early_stopping):
    options = {"length_penalty": length_penalty, "early_stopping": early_stopping}
    tokens, scores = generate_transformers(prompts(), num_beams=4, n_best=4, **options)

    decoded = generate_zoo(prompts(), Beam(width=4, **options))

    assert torch.equal(decoded.tokens, tokens)
    torch.testing.assert_close(decoded.scores, scores, rtol=0, atol=1e-6)


def test_beam_parameters_change_the_output():
    outputs = {
        str(decoded.tokens.tolist())
        for penalty, early in [(0.0, False), (1.0, False), (1.0, True), (1.0, "never")]
        for decoded in [generate_zoo(prompts(), Beam(length_penalty=penalty, early_stopping=early))]
    }
    assert len(outputs) == 4


@pytest.mark.parametrize("n_best", [1, 2])
def test_only_the_best_of_a_wide_beam(n_best):
    tokens, scores = generate_transformers(prompts(), num_beams=7, n_best=n_best)

    decoded = generate_zoo(prompts(), Beam(width=7, length_penalty=1.0, n_best=n_best))

    assert torch.equal(decoded.tokens, tokens)
    torch.testing.assert_close(decoded.scores, scores, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "sampler"), [({}, Greedy()), ({"num_beams": 4}, Beam(length_penalty=1.0, n_best=1))]
)
def test_pad_token_equal_to_the_end_token(options, sampler):
    tokens, _ = generate_transformers(prompts(), pad=EOS, **options)

    assert torch.equal(generate_zoo(prompts(), sampler, pad=EOS).tokens, tokens)


@pytest.mark.parametrize(
    ("options", "sampler"), [({}, Greedy()), ({"num_beams": 4}, Beam(length_penalty=1.0, n_best=1))]
)
def test_multiple_end_tokens(options, sampler):
    tokens, _ = generate_transformers(prompts(), eos=[EOS, 7, 11], **options)

    assert torch.equal(generate_zoo(prompts(), sampler, eos=(11, EOS, 7)).tokens, tokens)


FILTERS = [
    ({"repetition_penalty": 1.4}, [RepetitionPenalty(penalty=1.4)]),
    ({"no_repeat_ngram_size": 2}, [NoRepeatNgram(n=2)]),
    (
        {"repetition_penalty": 1.2, "no_repeat_ngram_size": 1},
        [RepetitionPenalty(penalty=1.2), NoRepeatNgram(n=1)],
    ),
]


@pytest.mark.parametrize(("options", "filters"), FILTERS)
@pytest.mark.parametrize("width", [1, 4])
def test_filters_before_greedy_and_beam(options, filters, width):
    tokens, scores = generate_transformers(prompts(), num_beams=width, **options)
    sampler = Greedy() if width == 1 else Beam(width=width, length_penalty=1.0, n_best=1)

    decoded = generate_zoo(prompts(), sampler, filters=filters)

    assert torch.equal(decoded.tokens, tokens)
    assert not torch.equal(decoded.tokens, generate_zoo(prompts(), sampler).tokens)
    if scores is not None:
        torch.testing.assert_close(decoded.scores, scores, rtol=0, atol=1e-6)


@pytest.mark.parametrize("filters", [(), (NoRepeatNgram(n=2),)])
@pytest.mark.parametrize("width", [1, 3])
def test_a_batch_of_prompts_of_different_lengths_equals_single_prompts(width, filters):
    prompt = prompts(7, 7)
    lengths = [1, 7, 3, 5, 2, 4, 6]
    for row, length in zip(prompt, lengths, strict=True):
        row[length:] = PAD
    sampler = Greedy() if width == 1 else Beam(width=width, length_penalty=1.0)
    options = {"no_repeat_ngram_size": 2} if filters else {}

    decoded = generate_zoo(prompt, sampler, filters=filters)

    for row, length, tokens in zip(prompt, lengths, decoded.tokens, strict=True):
        single, _ = generate_transformers(
            row[None, :length], num_beams=width, n_best=width, **options
        )
        padded = torch.full_like(tokens, PAD)
        padded[:, : single.shape[-1]] = single[0]
        assert torch.equal(tokens, padded)


@pytest.mark.parametrize(
    ("options", "sampler"),
    [
        ({}, Greedy()),
        ({"num_beams": 4, "num_return_sequences": 4}, Beam(length_penalty=1.0)),
        (
            {"num_beams": 4, "length_penalty": 0.6, "early_stopping": True},
            Beam(length_penalty=0.6, early_stopping=True, n_best=1),
        ),
    ],
)
def test_an_encoder_decoder_model(options, sampler):
    source = prompts(50, 6)
    source[::3, 4:] = PAD
    mask = source != PAD
    tokens = marian().generate(
        source,
        attention_mask=mask.long(),
        max_new_tokens=MAX_LENGTH,
        do_sample=False,
        suppress_tokens=[PAD],
        **options,
    )[:, 1:]
    with torch.no_grad():
        states = marian().get_encoder()(source, attention_mask=mask.long()).last_hidden_state

    memory = Memory(states, mask, states[:, 0])
    decoded = decode(
        # Marian starts with its padding token.
        GenerationInputs(MarianDecoder(model=marian()), memory, bos=PAD, eos=EOS, pad=PAD),
        DecodeRequest(sampler=sampler, max_length=MAX_LENGTH),
    )

    assert 0.1 < share_ended(tokens) < 1.0
    assert torch.equal(decoded.tokens.flatten(0, 1), tokens)
