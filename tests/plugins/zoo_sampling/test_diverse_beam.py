"""Diverse beam search against the paper's algorithm over Python lists."""

import math
from collections import Counter

import pytest
import torch

from zoo import ZooError
from zoo.plugin import Decoder, DecodeRequest, GenerationInputs, Memory, State, decode
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam

PAD, EOS, BOS, VOCAB, MAX_LENGTH = 0, 1, 2, 9, 6


class HistoryDecoder(Decoder):
    """Logits depend on all tokens so far, in order."""

    name = "history"

    def start(self, memory: Memory, *, steps: int) -> State:
        return State({"code": memory.states[:, 0, 0].long()})

    def step(self, tokens, state):
        code = state.per_hypothesis["code"] * 31 + tokens[:, 0]
        return torch.stack([logits(c) for c in code.tolist()])[:, None], state.updated(
            {"code": code}
        )


def logits(code: int) -> torch.Tensor:
    return torch.randn(VOCAB, generator=torch.Generator().manual_seed(code % 2**31)) * 1.5


def logprobs(item: int, tokens_so_far: tuple[int, ...]) -> list[float]:
    code = item
    for token in (BOS, *tokens_so_far):
        code = code * 31 + token
    values = logits(code).log_softmax(dim=-1).tolist()
    values[PAD] = -math.inf
    return values


def reference_search(item, *, width, groups, diversity, length_penalty):
    """At each time the groups step one after the other; all run to max_length."""
    w = width // groups
    alive = [[((), 0.0)] for _ in range(groups)]
    ended = [[] for _ in range(groups)]
    for t in range(1, MAX_LENGTH + 1):
        counts = Counter()
        for g in range(groups):
            candidates = [
                (total + logprob - diversity * counts[y], (*tokens_so_far, y), total + logprob)
                for tokens_so_far, total in alive[g]
                for y, logprob in enumerate(logprobs(item, tokens_so_far))
                if logprob > -math.inf
            ]
            candidates.sort(key=lambda each: -each[0])
            best = candidates[: 2 * w]
            final = [each for each in best[:w] if each[1][-1] == EOS or t == MAX_LENGTH]
            ended[g] += [
                (total / t**length_penalty, tokens_so_far) for _, tokens_so_far, total in final
            ]
            live = [each for each in best if each[1][-1] != EOS][:w]
            alive[g] = [(tokens_so_far, total) for _, tokens_so_far, total in live]
            counts.update(tokens_so_far[-1] for tokens_so_far in {each[1] for each in final + live})
    pools = [sorted(each, reverse=True)[:w] for each in ended]
    return sorted((each for pool in pools for each in pool), reverse=True)


def run(sampler, items=8):
    states = torch.arange(float(items))[:, None, None]
    memory = Memory(states, torch.ones(items, 1, dtype=torch.bool), states[:, 0])
    return decode(
        GenerationInputs(HistoryDecoder(), memory, bos=BOS, eos=EOS, pad=PAD),
        DecodeRequest(sampler=sampler, max_length=MAX_LENGTH),
    )


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize(("width", "groups"), [(4, 2), (6, 3), (3, 3)])
@pytest.mark.parametrize("diversity", [0.3, 2.0])
def test_output_equals_the_papers_algorithm(width, groups, diversity, length_penalty):
    parameters = {
        "width": width,
        "groups": groups,
        "diversity": diversity,
        "length_penalty": length_penalty,
    }

    # Every group runs to the end, as in the paper.
    decoded = run(DiverseBeam(**parameters, early_stopping="never"))

    for item in range(8):
        expected = reference_search(item, **parameters)
        for rank, (score, tokens_so_far) in enumerate(expected):
            tokens = [token for token in decoded.tokens[item, rank].tolist() if token != PAD]
            assert tokens == list(tokens_so_far)
            assert decoded.scores[item, rank].item() == pytest.approx(score, abs=1e-5)


def test_one_group_is_a_beam():
    beam = run(Beam(width=4))
    diverse = run(DiverseBeam(width=4, groups=1))

    assert torch.equal(diverse.tokens, beam.tokens)
    assert torch.equal(diverse.scores, beam.scores)


def test_without_diversity_every_group_is_the_same_beam():
    beam = run(Beam(width=2))
    same = run(DiverseBeam(width=4, groups=2, diversity=0.0))

    assert torch.equal(same.tokens[:, ::2], beam.tokens)
    assert torch.equal(same.tokens[:, 1::2], beam.tokens)


def test_diversity_makes_groups_start_with_different_tokens():
    first = run(DiverseBeam(width=3, groups=3, diversity=50.0)).tokens[..., 0]

    assert all(len(set(row)) == 3 for row in first.tolist())


def test_a_token_selected_by_an_earlier_group_is_penalized():
    logprobs_ = torch.tensor([[[0.6, 0.4], [0.6, 0.4]]]).log()

    strong = DiverseBeam(width=2, groups=2, diversity=1.0).select(logprobs_, torch.zeros(1, 2))
    weak = DiverseBeam(width=2, groups=2, diversity=0.1).select(logprobs_, torch.zeros(1, 2))

    assert strong.tokens.tolist() == [[0, 1]]
    assert weak.tokens.tolist() == [[0, 0]]
    assert strong.parents.tolist() == [[0, 1]]
    # The penalty is not part of the score.
    torch.testing.assert_close(strong.scores, torch.tensor([[0.6, 0.4]]).log())


def test_only_the_best_are_returned():
    full = run(DiverseBeam(width=6, groups=3))
    best = run(DiverseBeam(width=6, groups=3, n_best=2))

    assert torch.equal(best.scores, full.scores[:, :2])


@pytest.mark.parametrize("groups", [0, 3])
def test_groups_must_divide_width(groups):
    with pytest.raises(ZooError, match=rf"groups \({groups}\).*width \(4\)"):
        DiverseBeam(width=4, groups=groups)
