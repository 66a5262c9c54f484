import math

import pytest
import torch

from zoo.plugin import AlignmentContext
from zoo_alignment.monotonic import Monotonic


def logits(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).logit()


def test_expectation_has_known_values():
    scores = logits([0.5, 0.5, 0.5], [0.2, 0.4, 0.5])

    weights = Monotonic(mode="soft", r=0.0).double().eval()(scores)

    # q_2 = 1/2, 0.8 * 0.5 + 1/4, 0.6 * 0.65 + 1/8.
    expected = torch.tensor([[0.5, 0.25, 0.125], [0.1, 0.4 * 0.65, 0.5 * 0.515]]).double()
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-7)


def test_expectation_matches_the_sum_over_paths_as_loops():
    """Equation 9: alpha_ij = p_ij sum_k alpha_{i-1,k} prod_{l=k}^{j-1} (1 - p_il)."""
    torch.manual_seed(0)
    scores = torch.randn(2, 4, 7, dtype=torch.float64) * 2
    mask = torch.tensor([[True] * 7, [False, True, True, False, True, False, False]])

    weights = Monotonic(mode="soft", r=0.25).double().eval()(scores, mask[:, None])

    for b in range(2):
        previous = [1.0] + [0.0] * 6
        for i in range(4):
            p = [
                1 / (1 + math.exp(-scores[b, i, j] - 0.25)) if mask[b, j] else 0.0 for j in range(7)
            ]
            alpha = []
            for j in range(7):
                paths = [
                    previous[k] * math.prod(1 - p[m] for m in range(k, j)) for k in range(j + 1)
                ]
                alpha.append(p[j] * sum(paths))
            for j in range(7):
                assert abs(weights[b, i, j].item() - alpha[j]) < 1e-12
            previous = alpha


def test_hard_mode_matches_the_algorithm():
    torch.manual_seed(0)
    scores = torch.randn(20, 5, 7, dtype=torch.float64)
    mask = torch.rand(20, 1, 7) > 0.2

    weights = Monotonic(r=0.0).eval()(scores, mask)

    unselected = 0
    for b in range(20):
        at = 0
        for i in range(5):
            stop = next((j for j in range(at, 7) if mask[b, 0, j] and scores[b, i, j] > 0), None)
            expected = [float(j == stop) for j in range(7)]
            assert weights[b, i].tolist() == expected
            at = 7 if stop is None else stop
            unselected += stop is None
    assert 0 < unselected < 100


def test_single_steps_match_parallel_queries():
    torch.manual_seed(0)
    align = Monotonic(mode="soft").double().eval()
    scores = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    query = torch.zeros(2, 3, 1, 1)
    parallel = align(scores)

    previous = torch.zeros(2, 3, 6).double()
    for i in range(4):
        context = AlignmentContext(query, torch.tensor([i, i]), previous)
        weights = align(scores[:, :, i : i + 1], None, context)
        torch.testing.assert_close(weights[:, :, 0], parallel[:, :, i], rtol=0, atol=1e-12)
        previous = weights[:, :, 0]


def test_noise_is_added_in_training_only():
    torch.manual_seed(0)
    align, scores = Monotonic(mode="soft"), torch.randn(2, 3, 5)

    assert torch.equal(align.eval()(scores), align(scores))
    assert not torch.equal(align.train()(scores), align(scores))
    noiseless = Monotonic(noise=0.0)
    torch.testing.assert_close(noiseless.train()(scores), align.eval()(scores))
    assert set(noiseless.eval()(scores).unique().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_long_sequences_of_certain_keys_are_stable(scale):
    torch.manual_seed(0)
    align = Monotonic(mode="soft", r=0.0).eval()
    scores = (torch.randn(2, 6, 500) * scale).requires_grad_()

    weights = align(scores)
    weights[..., 3].sum().backward()

    assert weights.isfinite().all()
    assert (weights.sum(dim=-1) <= 1 + 1e-5).all()
    assert scores.grad.isfinite().all()


def test_gradients_match_finite_differences():
    torch.manual_seed(0)
    align = Monotonic(mode="soft").double().eval()
    scores = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradcheck(lambda x, r: align(x), (scores, align.r))


def test_is_sequential_and_not_normalised():
    assert Monotonic.sequential
    assert not Monotonic.normalised


def test_state_dict_keys():
    assert {k: v.item() for k, v in Monotonic(r=-2.0).state_dict().items()} == {"r": -2.0}
