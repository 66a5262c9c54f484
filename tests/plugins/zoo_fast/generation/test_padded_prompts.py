"""Prompts of different lengths, padded: the outputs of the reference, in fewer steps."""

import pytest
import torch
from padding_kit import DEVICE, VOCAB, assert_same_outputs, language_model, make_request

import zoo
from zoo import ZooError
from zoo.generation import stream_tokens
from zoo.plugin import GenerationInputs, Memory, decode
from zoo_fast.generation import kept_steps
from zoo_fast.generation.padded_prompts import find_padded
from zoo_fast.transformer.cached_state import RaggedState
from zoo_sampling.allowed_tokens import AllowedTokens
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.greedy import Greedy
from zoo_sampling.no_repeat_ngram import NoRepeatNgram
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.suppressed_tokens import SuppressedTokens
from zoo_sampling.top_k import TopK

LENGTHS = [3, 6, 2]
LONGEST = max(LENGTHS)

pytestmark = [
    pytest.mark.usefixtures("interpreter"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of NumPy, in the interpreter
]


@pytest.fixture
def steps(monkeypatch):
    """The number of rows of each step of the kernels; a prompt is no step."""
    monkeypatch.setenv("ZOO_CUDA_GRAPHS", "off")  # the code of a step runs each time
    from zoo_fast.transformer.kernels import decode_step

    counts, run_blocks = [], decode_step.run_blocks

    def counted(x, state, *args, **kwargs):
        if len(x) == len(state.rows["slots"]):
            counts.append(len(x))
        return run_blocks(x, state, *args, **kwargs)

    monkeypatch.setattr(decode_step, "run_blocks", counted)
    return counts


ROTARY = {"position": "rotary", "norm": {"kind": "rms", "place": "pre"}}
LEARNED = {"position": {"type": "learned", "length": 40}}


def make_model(options=ROTARY, layers=1):
    return language_model(layers, **options)


def make_inputs(model, lengths=LENGTHS, eos=()):
    generator = torch.Generator().manual_seed(1)
    prompt = torch.randint(3, VOCAB, (len(lengths), max(lengths)), generator=generator)
    counts = torch.tensor(lengths)
    prompt[torch.arange(prompt.shape[1]) >= counts[:, None]] = 0
    memory = Memory.empty(len(lengths), device=DEVICE, dtype=next(model.parameters()).dtype)
    given = {"prompt": prompt.to(DEVICE), "lengths": counts.to(DEVICE)}
    return GenerationInputs(model.decoder, memory, bos=1, eos=eos, pad=0, **given)


def compare(model, sampler, *, request=None, **inputs):
    """Compare the outputs with those of the reference, and return them."""
    return assert_same_outputs(
        model,
        lambda each: make_inputs(each, **inputs),
        lambda: make_request(sampler, **request or {}),
    )


SAMPLERS = [Greedy(), Beam(width=3, length_penalty=1.0), DiverseBeam(width=4, groups=2)]


ENDS = tuple(range(2, 8))
CASES = [(SAMPLERS[0], ROTARY, ENDS), (SAMPLERS[0], LEARNED, ()), (SAMPLERS[1], LEARNED, ENDS)]
SLOW = [(SAMPLERS[1], ROTARY, ()), (SAMPLERS[2], ROTARY, ENDS), (SAMPLERS[2], LEARNED, ())]


@pytest.mark.parametrize(
    ("sampler", "options", "eos"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_outputs_equal_those_of_the_reference_in_fewer_steps(sampler, options, eos, steps):
    found = compare(make_model(options), sampler, eos=eos)
    assert found.tokens.shape[-1] <= len(steps) + 1 <= 6
    if not eos:
        assert len(steps) == 5


def test_as_many_positions_as_the_reference_needs():
    learned = {"position": {"type": "learned", "length": LONGEST + 5}}
    compare(make_model(learned), Greedy())
    with pytest.raises(ZooError, match=f"exceed the maximum of {LONGEST + 5} positions"):
        compare(make_model(learned), Greedy(), request={"max_length": 7})


@pytest.mark.skipif(DEVICE == "cuda", reason="on a GPU they do if 64 rows are left")
def test_items_that_are_done_leave_the_batch(steps):
    # Random weights give items that end at different steps.
    model, lengths = make_model(), [2, 6, 3, 4, 2]
    options = {"lengths": lengths, "eos": tuple(range(2, 12)), "request": {"max_length": 9}}
    compare(model, Greedy(), **options)
    assert steps[0] == 5 > steps[-1]


FILTERS = [RepetitionPenalty(penalty=3.0), SuppressedTokens(tokens=[4, 9])]


@pytest.mark.parametrize("sampler", SAMPLERS[:2], ids=lambda sampler: sampler.name)
def test_filters_that_ignore_repeats(sampler, steps):
    compare(make_model(), sampler, request={"filters": FILTERS})
    assert len(steps) == 5


@pytest.mark.parametrize(
    "filter",
    [
        NoRepeatNgram(n=2),
        AllowedTokens(tokens=[3, 4, 5], start=5),
        SuppressedTokens(tokens=[3], stop=6),
    ],
    ids=lambda filter: filter.name,
)
def test_prompts_are_forced_with_other_filters(filter, steps):
    compare(make_model(), Greedy(), request={"filters": [filter]}, lengths=[2, 4])
    assert len(steps) == 5 + 4 - 2


def test_prompts_are_forced_with_random_samplers(steps):
    compare(make_model(), TopK(k=3), request={"seed": 0})
    assert len(steps) == 5 + LONGEST - min(LENGTHS)


def test_prompts_are_forced_while_attention_is_recorded(steps):
    model = make_model()
    expected = decode(make_inputs(model), make_request(Greedy()))
    zoo.accelerate(model)
    with zoo.recording(model) as weights:
        found = decode(make_inputs(model), make_request(Greedy()))
    assert torch.equal(found.tokens, expected.tokens)
    assert not steps
    assert weights
    with torch.no_grad():
        assert find_padded(model.decoder, torch.device(DEVICE)) is not None
        assert find_padded(make_model().decoder, torch.device(DEVICE)) is None


@pytest.mark.parametrize("eos", [(), tuple(range(2, 12)), (0, 5)], ids=["none", "some", "padding"])
def test_a_stream_yields_the_tokens_of_the_reference(eos, steps):
    model, request = make_model(), make_request(Greedy(), max_length=5)
    expected = list(stream_tokens(make_inputs(model, eos=eos), request))
    zoo.accelerate(model)
    found = list(stream_tokens(make_inputs(model, eos=eos), request))
    assert torch.equal(torch.cat(found, dim=1), torch.cat(expected, dim=1))
    assert len(steps) <= 4


@torch.no_grad()
def test_the_reference_step_rejects_rows_at_different_positions():
    model = zoo.accelerate(make_model())
    inputs, process = make_inputs(model), find_padded(model.decoder, torch.device(DEVICE))
    state = model.decoder.start(inputs.memory, steps=10)
    _, state = process.process_padded(
        model.decoder, inputs.prompt, inputs.lengths, state, ragged=True
    )
    assert isinstance(state, RaggedState)
    with zoo.recording(model), pytest.raises(ZooError, match="rows are at different positions"):
        model.decoder.step(inputs.prompt[:, :1], state)


@pytest.mark.parametrize("filters", [[], FILTERS], ids=["plain", "filtered"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_outputs_on_a_gpu_equal_those_of_the_reference(sampler, filters):
    lengths = [1 + 7 * item for item in range(8)]
    options = {"max_length": 40, "filters": filters}
    compare(make_model(layers=2), sampler, lengths=lengths, eos=(2, 3), request=options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_captured_steps_after_padded_prompts(sampler, dtype, monkeypatch):
    model = zoo.accelerate(make_model(layers=2).to(dtype))
    batches = [[3, 7, 2, 5], [2, 2, 7, 3], [7, 7, 1, 6], [5, 7, 7, 2]]
    inputs = [make_inputs(model, lengths, eos=(2, 3)) for lengths in batches]
    found = [decode(each, make_request(sampler, max_length=20)) for each in inputs]
    (steps,) = kept_steps._KEPT[model.decoder].values()
    assert steps.reason is None
    monkeypatch.setenv("ZOO_CUDA_GRAPHS", "off")
    for each, output in zip(inputs, found, strict=True):
        expected = decode(each, make_request(sampler, max_length=20))
        assert torch.equal(output.tokens, expected.tokens)
        torch.testing.assert_close(output.scores, expected.scores)
