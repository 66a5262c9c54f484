"""Decoding on a GPU: the same tokens as on the CPU, and few synchronisations."""

import gc
import weakref
from functools import partial

import pytest
import torch

import zoo
from zoo.generation import loop, stream_tokens
from zoo.plugin import DecodeRequest, GenerationInputs, Memory, decode
from zoo.testing.tiny import TinyDecoder, TinyEmbedding
from zoo_fast.generation import kept_steps, known_samplers
from zoo_fast.generation.fast_loop import SYNC_EVERY
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

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]

DETERMINISTIC = [Greedy(), Beam(), DiverseBeam(), TopK(k=1)]
FILTERS = [RepetitionPenalty(), NoRepeatNgram(n=2)]


@pytest.fixture(autouse=True)
def fast_loop(monkeypatch):
    """Accelerate the loop, although no acceleration serves the tiny decoder."""
    monkeypatch.setattr(loop, "is_accelerated", lambda part: True)


def run(sampler, device, *, max_length=20, eos=2, filters=FILTERS, prompt=None):
    torch.manual_seed(4)
    decoder = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4)
    torch.nn.init.normal_(decoder.out.weight, std=2.0)
    summary = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    memory = Memory(
        summary[:, None].to(device),
        torch.ones(6, 1, dtype=torch.bool, device=device),
        summary.to(device),
    )
    decoder.eval()
    return decode(
        GenerationInputs(decoder.to(device), memory, bos=1, eos=eos, pad=0, prompt=prompt),
        DecodeRequest(
            sampler=sampler,
            max_length=max_length,
            filters=filters,
            generator=torch.Generator(device).manual_seed(0),
        ),
    )


@pytest.mark.parametrize("prompt", [None, torch.tensor([[1, 3, 4]] * 3 + [[1, 5, 0]] * 3)])
@pytest.mark.parametrize("sampler", DETERMINISTIC, ids=lambda sampler: sampler.name)
def test_deterministic_samplers_agree_with_the_cpu(sampler, prompt):
    cpu, cuda = run(sampler, "cpu", prompt=prompt), run(sampler, "cuda", prompt=prompt)

    assert torch.equal(cuda.tokens.cpu(), cpu.tokens)
    torch.testing.assert_close(cuda.scores.cpu(), cpu.scores)


ALL = [*DETERMINISTIC, Temperature(), TopP(), MinP(), Typical()]


@pytest.mark.parametrize("sampler", ALL, ids=lambda sampler: sampler.name)
def test_steps_do_not_synchronise(sampler, recwarn):
    syncs = []
    for length in (2 * SYNC_EVERY, 6 * SYNC_EVERY):
        run(sampler, "cuda", max_length=length, eos=(), filters=[RepetitionPenalty()])  # warm up
        torch.cuda.set_sync_debug_mode("warn")
        recwarn.clear()
        try:
            with pytest.warns(UserWarning, match="synchronizing") as warned:
                run(sampler, "cuda", max_length=length, eos=(), filters=[RepetitionPenalty()])
        finally:
            torch.cuda.set_sync_debug_mode("default")
        syncs.append(len(warned))

    assert syncs[1] == syncs[0], syncs


ATTENTION = {"scorer": "scaled-dot", "align": "soft", "heads": 2, "head_dim": 32}
BLOCK = {"layers": 2, "attention": ATTENTION, "feed_forward": {"hidden": 70}}
SPEC = {
    "type": "seq2seq",
    "source": {"type": "token", "vocab": 41, "dim": 48},
    "encoder": {"type": "transformer", **BLOCK},
    "decoder": {"type": "transformer", "position": "sinusoidal", **BLOCK},
}


@pytest.fixture
def model():
    torch.manual_seed(0)
    built = zoo.compose({"zoo": 1, "name": "test", "model": SPEC}).eval().cuda()
    for parameter in built.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    return zoo.accelerate(built)


def generate(model, sampler, *, filters=(), seed=None, items=5, length=30):
    source = torch.randint(3, 41, (items, 7), generator=torch.Generator().manual_seed(items))
    generator = None if seed is None else torch.Generator("cuda").manual_seed(seed)
    return model.generate(
        {"source": source.cuda()},
        sampler,
        max_length=length,
        filters=filters,
        generator=generator,
    )


@pytest.mark.parametrize("filters", [[], FILTERS], ids=["plain", "filtered"])
@pytest.mark.parametrize("sampler", ALL, ids=lambda sampler: sampler.name)
def test_captured_steps_give_the_same_tokens(model, sampler, filters, monkeypatch):
    found = [generate(model, sampler, filters=filters, seed=3) for _ in range(3)]
    (steps,) = kept_steps._KEPT[model.decoder].values()
    assert steps.reason is None
    monkeypatch.setenv("ZOO_CUDA_GRAPHS", "off")
    expected = generate(model, sampler, filters=filters, seed=3)
    for each in found:
        assert torch.equal(each.tokens, expected.tokens)
        torch.testing.assert_close(each.scores, expected.scores)


LANGUAGE_MODEL = {
    "type": "language-model",
    "embedding": {"type": "token", "vocab": 41, "dim": 48},
    "decoder": {"type": "transformer", "position": "rotary", **BLOCK},
}


@pytest.mark.parametrize("spec", [SPEC, LANGUAGE_MODEL], ids=["seq2seq", "language-model"])
def test_captured_prompts_and_encoders_use_the_current_inputs(spec, monkeypatch):
    torch.manual_seed(0)
    model = zoo.accelerate(zoo.compose({"zoo": 1, "name": "test", "model": spec}).eval().cuda())
    for parameter in model.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    name = "source" if spec is SPEC else "prompt"
    batches = [{name: torch.randint(3, 41, (5, 7), device="cuda")} for _ in range(5)]
    found = [model.generate(batch, Greedy(), max_length=20).tokens for batch in batches]
    monkeypatch.setenv("ZOO_CUDA_GRAPHS", "off")
    for batch, tokens in zip(batches, found, strict=True):
        assert torch.equal(model.generate(batch, Greedy(), max_length=20).tokens, tokens)


@pytest.mark.parametrize("items", [1, 5])
@pytest.mark.parametrize("sampler", [Greedy(), Beam()], ids=lambda sampler: sampler.name)
def test_kernels_give_the_same_scores(model, sampler, items, monkeypatch):
    found = [generate(model, sampler, items=items) for _ in range(3)]  # the last ones are captured
    monkeypatch.setenv("ZOO_TRITON", "off")
    expected = generate(model, sampler, items=items)
    for each in found:
        torch.testing.assert_close(each.scores, expected.scores, atol=1e-3, rtol=1e-3)
        assert torch.equal(each.tokens, expected.tokens)


RANDOM = [Temperature(), TopK(k=5, temperature=0.7), TopP(), MinP()]


@pytest.mark.parametrize("sampler", RANDOM, ids=lambda sampler: sampler.name)
def test_kernels_sample_the_tokens_of_the_reference(model, sampler, monkeypatch):
    found = [generate(model, sampler, seed=3) for _ in range(3)]  # the last ones are captured
    monkeypatch.setenv("ZOO_CUDA_GRAPHS", "off")
    monkeypatch.delitem(known_samplers._KNOWN, type(sampler))
    expected = generate(model, sampler, seed=3)
    for each in found:
        assert torch.equal(each.tokens, expected.tokens)
        torch.testing.assert_close(each.scores, expected.scores)


def test_captured_steps_use_the_current_weights(model, monkeypatch):
    generate(model, Greedy())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    found = generate(model, Greedy())
    monkeypatch.setenv("ZOO_CUDA_GRAPHS", "off")
    assert torch.equal(found.tokens, generate(model, Greedy()).tokens)


def test_captured_prompts_and_steps_use_the_current_settings(model, monkeypatch):
    before = [generate(model, Greedy()) for _ in range(4)][-1]
    model.decoder.blocks[0].attention.scorers.first.scale = 30.0
    found = [generate(model, Greedy()) for _ in range(4)]
    monkeypatch.setenv("ZOO_CUDA_GRAPHS", "off")
    expected = generate(model, Greedy())
    assert not torch.equal(expected.scores, before.scores)
    for each in found:
        assert torch.equal(each.tokens, expected.tokens)
        torch.testing.assert_close(each.scores, expected.scores)


def test_a_stream_and_a_call_do_not_share_tensors(model):
    expected = generate(model, Greedy())
    inputs = model.prepare_generation({"source": torch.full((5, 7), 4, device="cuda")})
    request = DecodeRequest(sampler=Greedy(), max_length=30)
    alone = torch.cat(list(stream_tokens(inputs, request)), dim=1)
    together = []
    for tokens in stream_tokens(inputs, request):
        together.append(tokens.clone())
        assert torch.equal(generate(model, Greedy()).tokens, expected.tokens)
    assert torch.equal(torch.cat(together, dim=1), alone)


class WaitingDecoder(TinyDecoder):
    """A decoder that synchronises with the device, which a CUDA graph cannot."""

    def step(self, tokens, state):
        assert int(tokens.max()) >= 0
        return super().step(tokens, state)


def test_a_decoder_that_synchronises_is_not_captured():
    torch.manual_seed(4)
    decoder = WaitingDecoder(embedding=TinyEmbedding(), summary_dim=4).cuda().eval()
    summary = torch.randn(6, 4, device="cuda")
    memory = Memory(summary[:, None], torch.ones(6, 1, dtype=torch.bool, device="cuda"), summary)
    inputs = GenerationInputs(decoder, memory, bos=1, eos=(), pad=0)
    outputs = [
        decode(inputs, DecodeRequest(sampler=Greedy(), max_length=20)).tokens for _ in range(2)
    ]
    assert torch.equal(*outputs)
    (steps,) = kept_steps._KEPT[decoder].values()
    assert steps.reason is not None


def test_kept_steps_are_deleted_with_the_model(model):
    generate(model, Greedy())
    steps = weakref.ref(next(iter(kept_steps._KEPT[model.decoder].values())))
    model.decoder = None
    gc.collect()
    assert steps() is None


def test_a_changed_sampler_does_not_change_kept_steps():
    torch.manual_seed(0)
    model = zoo.compose("transformer-tiny", device="cuda").eval()

    def generate(sampler, penalty):
        inputs, filters = [[3, 4, 5, 6]], [penalty]
        found = zoo.generate(model, inputs, sampler=sampler, filters=filters, max_length=8, seed=0)
        return [best.tokens for best in found[0]]

    for make in (partial(TopK, k=1), partial(Beam, width=2)):
        sampler, penalty = make(), RepetitionPenalty(penalty=1.0)
        expected = generate(sampler, penalty)
        penalty.penalty = 50.0
        if isinstance(sampler, TopK):
            sampler.k = 5
        assert generate(sampler, penalty) != expected
        assert generate(make(), RepetitionPenalty(penalty=1.0)) == expected


def test_a_longer_source_does_not_change_the_positions_of_shorter_ones():
    torch.manual_seed(0)
    model = zoo.compose("transformer-tiny", device="cuda").eval()
    short, long = [3, 4, 5, 6], [3 + index % 7 for index in range(600)]
    generate = partial(zoo.generate, model, sampler="greedy", filters=[], max_length=6)
    expected = [generate([short]) for _ in range(5)][-1]  # captured
    generate([long])
    gc.collect()
    filled = [torch.full((64, 16), 1e3, device="cuda") for _ in range(2000)]  # freed memory
    assert generate([short])[0][0].tokens == expected[0][0].tokens
    assert generate([short])[0][0].score == pytest.approx(expected[0][0].score, rel=1e-3)
    assert len(filled) == 2000
