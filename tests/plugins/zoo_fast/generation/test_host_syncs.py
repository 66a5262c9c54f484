"""Synchronisations of the loop, counted on the CPU by the operations that would wait on a GPU."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import zoo
from zoo.generation.loop import DecodingLoop
from zoo.generation.prompts import build_prompts
from zoo.plugin import DecodeRequest, GenerationInputs, Memory
from zoo.testing.tiny import TinyDecoder, TinyEmbedding
from zoo_fast.generation.fast_loop import SYNC_EVERY, FastLoop
from zoo_fast.sampling import greedy
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

ALL = [
    Greedy(),
    Beam(),
    DiverseBeam(),
    Temperature(),
    TopK(k=3, temperature=0.7),
    TopP(),
    MinP(),
    Typical(),
]
ROTARY = {"type": "rotary"}
LONGROPE = {"short": [1.0] * 8, "long": [2.0] * 8, "original_length": 16, "length": 64}
SCALINGS = [
    {"type": "linear", "factor": 2.0},
    {"type": "llama3", "factor": 4.0, "original_length": 16},
    {"type": "yarn", "factor": 4.0, "original_length": 16},
    {"type": "longrope", **LONGROPE},
]
POSITIONS = [
    {"type": "sinusoidal"},
    {"type": "learned", "length": 9},
    ROTARY,
    {"type": "alibi"},
    {"type": "t5"},
    {"type": "disentangled"},
    {"type": "disentangled", "buckets": 8, "max_distance": 16},
    {"type": "gated", "position": "t5"},
    {"type": "combined", "parts": ["sinusoidal", "alibi"]},
    *({**ROTARY, "scaling": scaling} for scaling in SCALINGS),
]
SYNCING = ("aten._local_scalar_dense", "aten.nonzero", "aten.masked_select", "aten.equal")


class SyncCounter(TorchDispatchMode):
    """Count operations that wait for the device or copy values to it."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += str(func).startswith((*SYNCING, "aten.lift_fresh"))
        return func(*args, **(kwargs or {}))


def count_syncs(sampler, length):
    torch.manual_seed(0)
    decoder = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4)
    memory = Memory(torch.ones(3, 1, 4), torch.ones(3, 1, dtype=torch.bool), torch.randn(3, 4))
    prompt = torch.tensor([[1, 3, 4], [1, 0, 0], [1, 5, 0]])
    inputs = GenerationInputs(decoder, memory, bos=1, eos=(), pad=0, prompt=prompt)
    filters = [RepetitionPenalty(penalty=1.1), NoRepeatNgram(n=5)]
    request = DecodeRequest(sampler=sampler, max_length=length, filters=filters)
    prompts = build_prompts(inputs, length)
    with torch.no_grad(), SyncCounter() as counter:
        loop = FastLoop(
            DecodingLoop(decoder=decoder, memory=memory, prompts=prompts, request=request)
        )
        steps = list(loop.steps_after(loop.first(), SYNC_EVERY))
    assert len(steps) == length + 2
    return counter.count


@pytest.mark.parametrize("sampler", ALL, ids=lambda sampler: sampler.name)
def test_one_synchronisation_every_few_steps(sampler, monkeypatch):
    monkeypatch.setattr(greedy, "_step_on_cpu", lambda *_: None)  # it is not used on a GPU
    assert count_syncs(sampler, 5 * SYNC_EVERY) - count_syncs(sampler, SYNC_EVERY) == 4


@pytest.mark.parametrize(
    "position", POSITIONS, ids=lambda given: given.get("scaling", given)["type"]
)
@torch.no_grad()
def test_steps_with_positions_do_not_wait(position):
    block = {
        "type": "transformer",
        "layers": 2,
        "position": position,
        "feed_forward": {"hidden": 4},
    }
    block["attention"] = {"scorer": "scaled-dot", "align": "soft", "heads": 2, "head_dim": 16}
    embedding = {"type": "token", "vocab": 9, "dim": 32}
    model = {"type": "language-model", "embedding": embedding, "decoder": block}
    decoder = zoo.compose({"zoo": 1, "name": "test", "model": model}).eval().decoder
    state, token = decoder.start(Memory.empty(1), steps=4), torch.tensor([[3]])
    counts = []
    for _ in range(2):
        with SyncCounter() as counter:  # as on a GPU, where the offset is a tensor
            _, state = decoder.step_blocks(token, state, state.per_hypothesis["at"][0])
        counts.append(counter.count)
    assert counts[1] == 0  # the first step may copy constants
