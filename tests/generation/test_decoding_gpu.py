"""Decoding on a GPU: the same tokens as on the CPU, and few synchronisations."""

import pytest
import torch

from zoo.generation.loop import SYNC_EVERY
from zoo.plugin import DecodeRequest, GenerationInputs, Memory, decode
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

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]

DETERMINISTIC = [Greedy(), Beam(), DiverseBeam(), TopK(k=1)]
FILTERS = [RepetitionPenalty(), NoRepeatNgram(n=2)]


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
def test_one_synchronisation_every_few_steps(sampler, recwarn):
    syncs = []
    for length in (SYNC_EVERY, 5 * SYNC_EVERY):
        run(sampler, "cuda", max_length=length, eos=(), filters=[RepetitionPenalty()])  # warm up
        torch.cuda.set_sync_debug_mode("warn")
        recwarn.clear()
        try:
            with pytest.warns(UserWarning, match="synchronizing") as warned:
                run(sampler, "cuda", max_length=length, eos=(), filters=[RepetitionPenalty()])
        finally:
            torch.cuda.set_sync_debug_mode("default")
        syncs.append(len(warned))

    # The last synchronisation reads two values; both runs have it.
    assert syncs[1] - syncs[0] == 4, syncs
