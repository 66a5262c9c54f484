"""The batched prefix beam search compared with the search of one item."""

import math

import pytest
import torch

from zoo_ctc.batched_search import CHUNK, search_batch
from zoo_ctc.beam_candidates import pairs
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam
from zoo_ctc.prefix_search import BeamConfig, search

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
    config = BeamConfig(width, prune, weight=1.0, length_bonus=0.0)
    together = search(logprobs.cpu().numpy(), blank, config, None, lengths=lengths)
    for item, length in enumerate(lengths):
        frames = logprobs[item : item + 1, :length].cpu().numpy()
        (expected,) = search(frames, blank, config, None)
        found = hypotheses(*(result[item].cpu() for result in results))
        assert [labels for labels, _ in found] == [labels for labels, _ in expected]
        assert [labels for labels, _ in together[item]] == [labels for labels, _ in expected]
        pairs_of_scores = zip(found, together[item], expected, strict=True)
        for (_, score), (_, in_batch), (_, exact) in pairs_of_scores:
            assert score == pytest.approx(exact, abs=1e-9)
            assert in_batch == pytest.approx(exact, abs=1e-9)


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


def test_the_sampler_decodes_a_batch_of_any_device():
    logprobs = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    mask = torch.ones(2, 6, dtype=torch.bool)
    sampler = CtcPrefixBeam(width=5, n_best=2)
    expected = sampler.decode_frames(logprobs, mask, blank=0, pad=9)
    decoded = sampler.decode_batch(logprobs.to(DEVICE), mask.to(DEVICE), blank=0, pad=9)
    assert torch.equal(decoded.tokens.cpu(), expected.tokens)
    torch.testing.assert_close(decoded.scores.cpu(), expected.scores)
    silent = torch.full((1, 3, 2), -math.inf)
    silent[..., 0] = 0.0
    decoded = sampler.decode_batch(silent, torch.ones(1, 3, dtype=torch.bool), blank=0, pad=9)
    assert decoded.tokens.tolist() == [[[9], [9]]]
    assert decoded.scores.tolist() == [[0.0, -math.inf]]
