import math

import torch

from zoo_sampling.greedy import Greedy


def test_the_most_probable_token_is_selected_and_its_logprob_added():
    logprobs = torch.tensor([[[0.2, 0.5, 0.3]], [[0.6, 0.3, 0.1]]], dtype=torch.float64).log()
    scores = torch.tensor([[-1.0], [-2.0]], dtype=torch.float64)

    selection = Greedy().select(logprobs, scores)

    assert selection.tokens.tolist() == [[1], [0]]
    assert selection.parents.tolist() == [[0], [0]]
    expected = torch.tensor([[-1 + math.log(0.5)], [-2 + math.log(0.6)]], dtype=torch.float64)
    torch.testing.assert_close(selection.scores, expected, rtol=0, atol=1e-12)


def test_selections_equal_the_argmax_of_lists():
    torch.manual_seed(0)
    logprobs = torch.randn(20, 1, 7).log_softmax(dim=-1)
    scores = torch.randn(20, 1)

    selection = Greedy().select(logprobs, scores)

    for b, row in enumerate(logprobs[:, 0].tolist()):
        best = max(range(7), key=row.__getitem__)
        assert selection.tokens[b, 0] == best
        assert abs(selection.scores[b, 0].item() - (scores[b, 0].item() + row[best])) < 1e-6


def test_the_first_of_equal_tokens_is_selected():
    logprobs = torch.full((1, 1, 6), math.log(0.1))
    logprobs[..., 2] = logprobs[..., 4] = math.log(0.3)

    assert Greedy().select(logprobs, torch.zeros(1, 1)).tokens.tolist() == [[2]]


def test_the_only_possible_token_leaves_the_score():
    logprobs = torch.full((1, 1, 4), -math.inf)
    logprobs[..., 3] = 0.0

    selection = Greedy().select(logprobs, torch.tensor([[-5.0]]))

    assert selection.tokens.tolist() == [[3]]
    assert selection.scores.tolist() == [[-5.0]]


def test_distribution_is_one_hot():
    logprobs = torch.tensor([0.2, 0.5, 0.3]).log()

    assert Greedy().distribution(logprobs).tolist() == [0, 1, 0]


def test_width_is_one():
    assert Greedy().width == 1
