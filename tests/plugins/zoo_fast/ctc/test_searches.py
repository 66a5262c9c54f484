"""The prefix beam searches of a batch compared with the reference."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from kits.thread_kit import run_in_threads

import zoo
from zoo.acceleration.binding import bound_accelerations
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam
from zoo_ctc.prefix_search import PrefixBeamConfig, search
from zoo_fast.ctc.array_search import search_arrays
from zoo_fast.ctc.batched_search import CHUNK, search_batch
from zoo_fast.ctc.beam_candidates import pairs
from zoo_fast.ctc.searches import CtcBeamGraphed

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def hypotheses(labels, mask, scores):
    return [
        (tuple(labels[i][mask[i]].tolist()), scores[i].item())
        for i in range(len(scores))
        if scores[i] > -math.inf
    ]


@pytest.mark.parametrize(
    ("lengths", "V", "width", "blank", "prune"),
    [
        ((20, 0, 7), 5, 7, 0, 0.0),
        ((CHUNK, 3), 3, 60, 1, 0.0),  # wider than the number of prefixes
        ((CHUNK + 1,), 40, 10, 39, 0.0),  # more symbols than the beam is wide
        ((12, 9), 12, 20, 0, 0.05),
        ((1,), 3, 1, 0, 0.0),
        ((0, 0), 3, 2, 0, 0.0),
    ],
)
def test_hypotheses_equal_those_of_the_search_of_one_item(lengths, V, width, blank, prune):
    generator = torch.Generator().manual_seed(V + width)
    logits = torch.randn(len(lengths), max(lengths), V, generator=generator, dtype=torch.float64)
    logprobs = logits.log_softmax(dim=-1).to(DEVICE)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    results = search_batch(
        logprobs, mask.to(DEVICE), blank=blank, width=width, prune=prune, n_best=width
    )
    config = PrefixBeamConfig(width, prune, weight=1.0, length_bonus=0.0)
    together = search_arrays(logprobs.cpu().numpy(), blank, config, None, lengths=lengths)
    for item, length in enumerate(lengths):
        expected = search(logprobs[item, :length].cpu().numpy(), blank, config, None)
        found = hypotheses(*(result[item].cpu() for result in results))
        assert [labels for labels, _ in found] == [labels for labels, _ in expected]
        assert [labels for labels, _ in together[item]] == [labels for labels, _ in expected]
        pairs_of_scores = zip(found, together[item], expected, strict=True)
        for (_, score), (_, in_batch), (_, exact) in pairs_of_scores:
            assert score == pytest.approx(exact, abs=1e-9)
            assert in_batch == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_threads_do_not_share_their_beams(device):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 2, 2 * CHUNK, 5, generator=generator, dtype=torch.float64)
    mask = torch.ones(2, 2 * CHUNK, dtype=torch.bool, device=device)
    decode = partial(search_batch, mask=mask, blank=0, width=4, prune=0.0, n_best=2)
    calls = [partial(decode, each.log_softmax(dim=-1).to(device)) for each in logits]
    expected = [call() for call in calls]
    for results, value in zip(run_in_threads(calls, times=5), expected, strict=True):
        for result in results:
            assert all(map(torch.equal, result, value))


def test_pairs_contain_the_best_sums():
    generator = torch.Generator().manual_seed(0)
    for width in (1, 3, 10):
        prefixes = torch.randn(width, generator=generator).sort(descending=True).values
        labels = torch.randn(6, generator=generator).sort(descending=True).values
        prefix, label, index = pairs(width, 6, width)
        sums = prefixes[:, None] + labels
        sums[:, 0] -= 10  # the extension by the last label is worse
        best = set(sums.flatten().topk(width).indices.tolist())
        assert best <= set((prefix * 6 + label).tolist())
        assert (index[prefix, label] == range(len(prefix))).all()
    assert len(pairs(3, 6, None).prefix) == 18


def test_the_sampler_decodes_a_batch_on_any_device():
    logprobs = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    mask = torch.ones(2, 6, dtype=torch.bool)
    sampler = CtcPrefixBeam(width=5, n_best=2)
    expected = sampler.decode_frames(logprobs, mask, blank=0, pad=9)
    silent = torch.full((1, 3, 2), -math.inf)
    silent[..., 0] = 0.0
    for each in (CtcBeamGraphed(), *bound_accelerations(zoo.accelerate(CtcPrefixBeam()))):
        decoded = each.decode_frames(sampler, logprobs.to(DEVICE), mask.to(DEVICE), blank=0, pad=9)
        assert torch.equal(decoded.tokens.cpu(), expected.tokens)
        torch.testing.assert_close(decoded.scores.cpu(), expected.scores)
        decoded = each.decode_frames(
            sampler, silent, torch.ones(1, 3, dtype=torch.bool), blank=0, pad=9
        )
        assert decoded.tokens.tolist() in ([[[9], [9]]], [[[9]]])
        assert decoded.scores.tolist() == [[0.0, -math.inf]]


def test_a_language_model_is_used_by_the_search_in_arrays():
    class Lm:
        def next_logprobs(self, histories, vocab):
            rows = [[-1.0 - (len(h) + k) % 3 for k in range(vocab)] for h in histories]
            return np.array(rows), np.array([-0.5 * len(h) for h in histories])

    generator = torch.Generator().manual_seed(1)
    logprobs = torch.randn(2, 6, 4, generator=generator, dtype=torch.float64).log_softmax(-1)
    mask = torch.arange(6) < torch.tensor([[6], [4]])
    sampler = CtcPrefixBeam(width=6)
    sampler.lm = Lm()
    expected = sampler.decode_frames(logprobs, mask, blank=0, pad=9)
    with torch.no_grad():
        decoded = zoo.accelerate(sampler).decode_frames(logprobs, mask, blank=0, pad=9)
    assert torch.equal(decoded.tokens, expected.tokens)
    torch.testing.assert_close(decoded.scores, expected.scores)
