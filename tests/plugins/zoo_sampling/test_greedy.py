import math

import torch

from zoo_sampling.greedy import Greedy


def test_the_likeliest_token_is_taken_and_its_log_probability_added():
    logprobs = torch.tensor([[[0.2, 0.5, 0.3]], [[0.6, 0.3, 0.1]]], dtype=torch.float64).log()
    scores = torch.tensor([[-1.0], [-2.0]], dtype=torch.float64)

    chosen = Greedy().select(logprobs, scores)

    assert chosen.tokens.tolist() == [[1], [0]]
    assert chosen.parents.tolist() == [[0], [0]]
    expected = torch.tensor([[-1 + math.log(0.5)], [-2 + math.log(0.6)]], dtype=torch.float64)
    torch.testing.assert_close(chosen.scores, expected, rtol=0, atol=1e-12)


def test_choices_equal_a_plain_search_for_the_largest():
    torch.manual_seed(0)
    logprobs = torch.randn(20, 1, 7).log_softmax(dim=-1)
    scores = torch.randn(20, 1)

    chosen = Greedy().select(logprobs, scores)

    for b, row in enumerate(logprobs[:, 0].tolist()):
        best = max(range(7), key=row.__getitem__)
        assert chosen.tokens[b, 0] == best
        assert abs(chosen.scores[b, 0].item() - (scores[b, 0].item() + row[best])) < 1e-6


def test_the_first_of_equals_is_taken():
    logprobs = torch.full((1, 1, 6), math.log(0.1))
    logprobs[..., 2] = logprobs[..., 4] = math.log(0.3)

    assert Greedy().select(logprobs, torch.zeros(1, 1)).tokens.tolist() == [[2]]


def test_a_finished_hypothesis_takes_the_one_token_it_is_offered_at_no_cost():
    logprobs = torch.full((1, 1, 4), -math.inf)
    logprobs[..., 3] = 0.0

    chosen = Greedy().select(logprobs, torch.tensor([[-5.0]]))

    assert chosen.tokens.tolist() == [[3]]
    assert chosen.scores.tolist() == [[-5.0]]


def test_its_distribution_is_certain():
    logprobs = torch.tensor([0.2, 0.5, 0.3]).log()

    assert Greedy().distribution(logprobs).tolist() == [0, 1, 0]


def test_it_keeps_one_hypothesis():
    assert Greedy().width == 1
