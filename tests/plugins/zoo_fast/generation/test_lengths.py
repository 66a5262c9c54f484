"""Lengths that captured graphs share: the outputs of the reference, with few shapes."""

import copy

import pytest
import torch
from padding_kit import DEVICE, VOCAB, assert_same_outputs, language_model, make_request

import zoo
from zoo import ZooError
from zoo.generation import stream_tokens
from zoo.generation.loop import DecodingLoop
from zoo.generation.prompts import build_prompts
from zoo.plugin import GenerationInputs, Memory, decode
from zoo_fast.generation import kept_graphs, kept_steps, lengths
from zoo_fast.generation.fast_loop import FastLoop
from zoo_fast.generation.lengths import (
    cache_length,
    pad_memory,
    prompt_length,
    source_length,
    step_limit,
)
from zoo_fast.seq2seq.captured_encoder import pad_source
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.greedy import Greedy
from zoo_sampling.no_repeat_ngram import NoRepeatNgram
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.top_k import TopK

# Of NumPy, in the interpreter of Triton.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(autouse=True)
def varying(monkeypatch):
    """Lengths are padded from the first call on."""
    monkeypatch.setattr(lengths, "EXACT_LENGTHS", 0)


@pytest.mark.parametrize("rounded", [prompt_length, cache_length, source_length])
def test_lengths_are_few_and_not_much_longer(rounded):
    padded = [rounded(length) for length in range(1, 4097)]
    assert all(found >= length for length, found in enumerate(padded, 1))
    assert padded == sorted(padded)
    assert all(rounded(found) == found for found in set(padded))
    assert len({found for found in padded if found > 512}) <= 24
    assert max(found / length for length, found in enumerate(padded, 1) if length > 512) <= 1.25


@pytest.mark.usefixtures("interpreter")
@torch.no_grad()
def test_nothing_is_padded_before_the_lengths_of_the_calls_are_many(monkeypatch):
    monkeypatch.setattr(lengths, "EXACT_LENGTHS", 2)
    model, request = zoo.accelerate(make_model()), make_request(Greedy(), max_length=4)
    columns = []
    for length in (9, 10, 9, 9, 10, 11, 9):
        inputs = make_inputs(model, length)
        prompts = build_prompts(inputs, request.max_length)
        options = {"decoder": inputs.decoder, "memory": inputs.memory}
        loop = FastLoop(DecodingLoop(prompts=prompts, request=request, **options))
        loop._arrange_prompts()
        columns.append(loop.first().search.tokens.shape[-1])
    assert columns == [13, 14, 13, 13, 14, 17, 17]
    assert not lengths.lengths_vary(make_model().decoder, torch.device("meta"), 1)


def make_model(position="rotary", layers=1):
    return language_model(layers, position=position, norm={"place": "pre"})


def learned(length):
    return {"type": "learned", "length": length}


def make_inputs(model, length, items=2, eos=()):
    generator = torch.Generator().manual_seed(length)
    prompt = torch.randint(3, VOCAB, (items, length), generator=generator).to(DEVICE)
    memory = Memory.empty(items, device=DEVICE, dtype=next(model.parameters()).dtype)
    return GenerationInputs(model.decoder, memory, bos=1, eos=eos, pad=0, prompt=prompt)


def compare(model, length, request, **inputs):
    """Compare the outputs with those of the reference."""
    assert_same_outputs(model, lambda each: make_inputs(each, length, **inputs), request)


SAMPLERS = [Greedy(), Beam(width=3, length_penalty=1.0, early_stopping="never"), TopK(k=3)]
POSITIONS = ["rotary", learned(64), "rotary"]


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize(("sampler", "position"), list(zip(SAMPLERS, POSITIONS, strict=True)))
def test_padded_prompts_have_the_outputs_of_the_reference(sampler, position):
    eos = tuple(range(2, 6))
    compare(make_model(position), 5, lambda: make_request(sampler, seed=0), eos=eos)


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize(
    ("length", "items", "max_length"),
    [(1, 2, 3), (2, 3, 1), (17, 1, 1), (19, 2, 2)],
    ids=["one token", "one step", "kernels", "blocks"],
)
def test_sizes_of_prompts(length, items, max_length):
    request = make_request(Greedy(), max_length=max_length)
    compare(make_model(), length, lambda: request, items=items)


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("filter", [RepetitionPenalty(penalty=3.0), NoRepeatNgram(n=2)])
def test_filters_do_not_get_the_padding(filter):
    compare(make_model(), 6, lambda: make_request(Greedy(), [filter]))


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("length", [7, 9, 10, 11])
def test_texts_that_pass_a_length_have_other_rotations(length, width):
    factors = {"short": [1.0] * 16, "long": [3.0] * 16, "original_length": 10, "length": 40}
    model = make_model({"type": "rotary", "scaling": {"type": "longrope", **factors}})
    sampler = Beam(width=width) if width > 1 else Greedy()
    compare(model, length, lambda: make_request(sampler))


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("length", [9, 12, 20])
def test_no_more_positions_than_the_model_has(length):
    model = make_model(learned(length + 5))
    compare(model, length, lambda: make_request(Greedy(), max_length=6))
    with pytest.raises(ZooError, match=f"exceed the maximum of {length + 5} positions"):
        compare(model, length, lambda: make_request(Greedy(), max_length=7))


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("sampler", [Greedy(), TopK(k=3)], ids=lambda sampler: sampler.name)
def test_a_stream_has_no_padding(sampler):
    model, request = make_model(), lambda: make_request(sampler, seed=0)
    expected = list(stream_tokens(make_inputs(model, 5), request()))
    zoo.accelerate(model)
    found = list(stream_tokens(make_inputs(model, 5), request()))
    assert torch.equal(torch.cat(found, dim=1), torch.cat(expected, dim=1))


@pytest.mark.usefixtures("interpreter")
@torch.no_grad()
def test_prompts_of_similar_length_have_the_same_shapes():
    model = zoo.accelerate(make_model())

    def shapes(length, max_length):
        request, inputs = make_request(Greedy(), max_length=max_length), make_inputs(model, length)
        prompts = build_prompts(inputs, max_length)
        options = {"decoder": inputs.decoder, "memory": inputs.memory}
        loop = FastLoop(DecodingLoop(prompts=prompts, request=request, **options))
        loop._arrange_prompts()
        state = loop.first()
        assert state.search.cur_len == length + 1
        tensors = kept_steps.flatten(state)
        assert tensors["max_length"] == max_length
        assert state.state.rows["at"].tolist() == [length] * 2
        return {name: tensor.shape for name, tensor in tensors.items()}

    first = shapes(9, 20)
    assert first["state.history.0.keys"][2] == 32
    assert first["tokens"][2] == 33
    assert shapes(15, 17) == shapes(20, 10) == first != shapes(15, 20)


def test_other_decoders_keep_their_lengths():
    class Other(type(make_model().decoder)):
        pass

    assert step_limit(make_model(learned(40)).decoder) == 40
    assert step_limit(object.__new__(Other)) is None


SOURCE = {"vocab": 11, "dim": 8}


def make_seq2seq(**source):
    attention = {"scorer": "scaled-dot", "heads": 2, "align": "soft"}
    blocks = {"layers": 1, "attention": attention, "feed_forward": {"hidden": 8}}
    position = {"position": source.pop("position", "sinusoidal")}
    if "pattern" in source:
        position = {"pattern": source.pop("pattern")}
    model = {
        "type": "seq2seq",
        "source": {"type": "token", **SOURCE, **source},
        "target": {"type": "token", **SOURCE},
        "encoder": {"type": "transformer", **blocks, **position},
        "decoder": {"type": "transformer", **blocks, "position": "sinusoidal"},
    }
    return zoo.compose({"zoo": 1, "name": "test", "model": model}, seed=0).eval()


@torch.no_grad()
def test_a_padded_source_has_the_memory_of_the_source():
    model, source = make_seq2seq(), torch.tensor([[3, 4, 5, 6, 7], [3, 4, 0, 0, 0]])
    padded = pad_source(model, source)
    assert padded.shape == (2, 16)
    expected, found = model.encode(source), model.encode(padded)
    torch.testing.assert_close(found.states[:, :5], expected.states)
    torch.testing.assert_close(found.summary, expected.summary)
    memory = pad_memory(expected, 16)
    assert torch.equal(memory.mask, found.mask)
    tokens = torch.tensor([[1, 5, 3], [1, 4, 4]])
    logits = model.decoder(tokens, expected)
    for other in (memory, found):
        torch.testing.assert_close(model.decoder(tokens, other), logits)


@pytest.mark.usefixtures("interpreter")
def test_recorded_weights_and_hooks_have_no_padding(monkeypatch):
    model = make_seq2seq().to(DEVICE)
    plain, source = copy.deepcopy(model), [[3, 4, 5, 6, 7], [3, 4, 5]]
    zoo.accelerate(model)

    def generate(model):
        zoo.generate(model, source, sampler="greedy", max_length=3)

    def shapes(model):
        with zoo.recording(model) as weights:
            generate(model)
        return {name: [each.shape for each in calls] for name, calls in weights.items()}

    for _ in range(3):
        generate(model)
    found = shapes(model)
    keys, lengths = model.decoder.blocks[0].cross.key, []
    with keys.register_forward_hook(lambda *call: lengths.append(call[2].shape[1])):
        generate(model)
    assert lengths == [5]
    monkeypatch.setenv("ZOO_FAST", "off")
    assert found == shapes(plain)


class Columns(Greedy):
    """Notes the number of columns of the search."""

    def init_state(self, task):
        self.seen = task.total_length
        return super().init_state(task)


@pytest.mark.usefixtures("interpreter")
def test_an_unknown_sampler_gets_the_columns_of_the_reference():
    model, sampler = make_model(), Columns()
    compare(model, 9, lambda: make_request(sampler, max_length=2))
    assert sampler.seen == 9 + 2


GRID = {"type": "grid-bias", "size": [2, 4]}


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ({"padding": None}, (1, 5)),  # padding would be a token
        ({"padding_ends": True}, (1, 5)),  # the first one is valid
        ({"position": learned(9)}, (1, 5)),
        ({"position": learned(16)}, (1, 5)),
        ({"pattern": [{"position": GRID}]}, (1, 5)),  # has 9 positions
        ({"segments": 2}, (1, 5, 2)),
        ({}, (1, 0)),
    ],
)
def test_sources_that_are_not_padded(source, shape):
    model = make_seq2seq(**source)
    tokens = torch.ones(shape, dtype=torch.long)
    is_padded = source == {"position": learned(16)}
    assert (pad_source(model, tokens) is not tokens) == is_padded


GPU = [Greedy(), Beam(width=3), DiverseBeam(width=4, groups=2), TopK(k=3)]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("sampler", GPU, ids=lambda sampler: sampler.name)
def test_calls_of_similar_length_share_their_graphs(sampler, monkeypatch):
    model = zoo.accelerate(make_model(layers=2))
    calls = [(17, 34), (22, 35), (20, 40), (18, 33), (23, 27), (21, 41)]

    def run(length, max_length):
        request = make_request(sampler, max_length=max_length, seed=length)
        return decode(make_inputs(model, length, eos=(2, 3)), request)

    found = [run(*call) for call in calls]
    (steps,) = kept_steps._KEPT[model.decoder].values()
    assert steps.reason is None
    graphs = kept_graphs.module_graphs(model.decoder)._kept.values()
    assert [kept.graphed.graphs for kept in graphs] == [1]
    assert all(kept.graphed.bytes > 0 for kept in graphs)
    monkeypatch.setenv("ZOO_CUDA_GRAPHS", "off")
    for call, output in zip(calls, found, strict=True):
        expected = run(*call)
        assert torch.equal(output.tokens, expected.tokens)
        torch.testing.assert_close(output.scores, expected.scores)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_sources_of_similar_length_share_their_graphs(monkeypatch):
    model = zoo.accelerate(make_seq2seq().to("cuda"))
    sources = [torch.randint(3, 11, (2, length)).tolist() for length in (9, 12, 16, 10, 11, 14)]
    found = [zoo.generate(model, source, sampler="greedy", max_length=9) for source in sources]
    for module in (model, model.decoder):
        (kept,) = kept_graphs.module_graphs(module)._kept.values()
        assert kept.graphed.graphs == 1
    monkeypatch.setenv("ZOO_CUDA_GRAPHS", "off")
    for source, output in zip(sources, found, strict=True):
        expected = zoo.generate(model, source, sampler="greedy", max_length=9)
        assert [[each.tokens for each in row] for row in output] == [
            [each.tokens for each in row] for row in expected
        ]
