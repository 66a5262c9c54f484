import math

import pytest
import torch

from zoo.plugin import AlignmentContext
from zoo_alignment.monotonic import Monotonic


def logits(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).logit()


def test_the_expectation_of_scores_worked_out_by_hand():
    scores = logits([0.5, 0.5, 0.5], [0.2, 0.4, 0.5])

    weights = Monotonic(mode="soft", r=0.0).double().eval()(scores)

    # q_2 = 1/2, 0.8 * 0.5 + 1/4, 0.6 * 0.65 + 1/8.
    expected = torch.tensor([[0.5, 0.25, 0.125], [0.1, 0.4 * 0.65, 0.5 * 0.515]]).double()
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-7)


def test_the_expectation_equals_the_paper_s_sum_over_paths_written_as_loops():
    """Equation 9: alpha_ij = p_ij sum_k alpha_{i-1,k} prod_{l=k}^{j-1} (1 - p_il)."""
    torch.manual_seed(0)
    scores = torch.randn(2, 4, 7, dtype=torch.float64) * 2
    mask = torch.tensor([[True] * 7, [False, True, True, False, True, False, False]])

    weights = Monotonic(mode="soft", r=0.25).double().eval()(scores, mask[:, None])

    for b in range(2):
        before = [1.0] + [0.0] * 6
        for i in range(4):
            p = [
                1 / (1 + math.exp(-scores[b, i, j] - 0.25)) if mask[b, j] else 0.0 for j in range(7)
            ]
            now = []
            for j in range(7):
                paths = [before[k] * math.prod(1 - p[m] for m in range(k, j)) for k in range(j + 1)]
                now.append(p[j] * sum(paths))
            for j in range(7):
                assert abs(weights[b, i, j].item() - now[j]) < 1e-12
            before = now


def test_hard_reading_follows_the_paper_s_algorithm():
    torch.manual_seed(0)
    scores = torch.randn(20, 5, 7, dtype=torch.float64)
    mask = torch.rand(20, 1, 7) > 0.2

    weights = Monotonic(r=0.0).eval()(scores, mask)

    ran_out = 0
    for b in range(20):
        at = 0
        for i in range(5):
            stop = next((j for j in range(at, 7) if mask[b, 0, j] and scores[b, i, j] > 0), None)
            expected = [float(j == stop) for j in range(7)]
            assert weights[b, i].tolist() == expected
            at = 7 if stop is None else stop  # past the last key there is nothing more to see
            ran_out += stop is None
    assert 0 < ran_out < 100


def test_steps_in_turn_equal_all_at_once():
    torch.manual_seed(0)
    align = Monotonic(mode="soft").double().eval()
    scores = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    query = torch.zeros(2, 3, 1, 1)
    whole = align(scores)

    before = torch.zeros(2, 3, 6).double()
    for i in range(4):
        context = AlignmentContext(query, torch.tensor([i, i]), before)
        weights = align(scores[:, :, i : i + 1], None, context)
        torch.testing.assert_close(weights[:, :, 0], whole[:, :, i], rtol=0, atol=1e-12)
        before = weights[:, :, 0]


def test_noise_is_for_training_alone():
    torch.manual_seed(0)
    align, scores = Monotonic(mode="soft"), torch.randn(2, 3, 5)

    assert torch.equal(align.eval()(scores), align(scores))
    assert not torch.equal(align.train()(scores), align(scores))
    quiet = Monotonic(noise=0.0)
    torch.testing.assert_close(quiet.train()(scores), align.eval()(scores))
    assert set(quiet.eval()(scores).unique().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_long_sequences_of_certain_keys_are_neither_nan_nor_too_much(scale):
    torch.manual_seed(0)
    align = Monotonic(mode="soft", r=0.0).eval()
    scores = (torch.randn(2, 6, 500) * scale).requires_grad_()

    weights = align(scores)
    weights[..., 3].sum().backward()

    assert weights.isfinite().all()
    assert (weights.sum(dim=-1) <= 1 + 1e-5).all()
    assert scores.grad.isfinite().all()


def test_gradients_are_those_of_finite_differences():
    torch.manual_seed(0)
    align = Monotonic(mode="soft").double().eval()
    scores = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradcheck(lambda x, r: align(x), (scores, align.r))


def test_it_needs_the_step_before():
    assert Monotonic.sequential
    assert not Monotonic.normalised


def test_its_weights_are_named():
    assert {k: v.item() for k, v in Monotonic(r=-2.0).state_dict().items()} == {"r": -2.0}
