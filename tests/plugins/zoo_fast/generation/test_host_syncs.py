"""Synchronisations of the loop, counted on the CPU by the operations that would wait on a GPU."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

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
