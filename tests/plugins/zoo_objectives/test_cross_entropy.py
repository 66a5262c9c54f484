import math

import pytest
import torch
import torch.nn.functional as F

from zoo import Outputs
from zoo_objectives.cross_entropy import CrossEntropy


def outputs(B: int = 3, T: int = 4, V: int = 5) -> Outputs:
    generator = torch.Generator().manual_seed(0)
    mask = torch.tensor([[True] * T, [True] + [False] * (T - 1), [False] * T])[:B]
    return Outputs(
        torch.randn(B, T, V, generator=generator) * 3,
        torch.randint(V, (B, T), generator=generator),
        mask,
    )


def test_the_loss_is_the_mean_surprise_at_the_targets():
    # Probabilities 1/4 and 3/4 at both steps.
    logits = torch.tensor([[[0.0, math.log(3)], [0.0, math.log(3)]]])
    targets = torch.tensor([[0, 1]])

    loss = CrossEntropy()(Outputs(logits, targets, torch.ones(1, 2, dtype=torch.bool)))

    assert loss.shape == ()
    assert loss.item() == pytest.approx((math.log(4) + math.log(4 / 3)) / 2, abs=1e-6)


def test_smoothing_spreads_mass_over_the_whole_vocabulary():
    logits = torch.tensor([[[0.0, math.log(3)]]])

    loss = CrossEntropy(smoothing=0.1)(
        Outputs(logits, torch.tensor([[1]]), torch.ones(1, 1, dtype=torch.bool))
    )

    # The target has 0.9 + 0.1 / 2 of the mass, the other 0.1 / 2.
    expected = -(0.95 * math.log(3 / 4) + 0.05 * math.log(1 / 4))
    assert loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_the_loss_equals_the_formula_written_as_loops(smoothing):
    given = outputs()
    total, counted = 0.0, 0
    for b in range(3):
        for t in range(4):
            if given.mask[b, t]:
                row = given.logits[b, t].double().tolist()
                whole = math.log(sum(math.exp(x) for x in row))
                logprobs = [x - whole for x in row]
                right = logprobs[int(given.targets[b, t])]
                total -= (1 - smoothing) * right + smoothing / 5 * sum(logprobs)
                counted += 1
    assert counted == 5

    objective = CrossEntropy(smoothing=smoothing)

    assert objective(given).item() == pytest.approx(total / counted, abs=1e-5)
    assert objective.reference(given) == pytest.approx(total / counted, abs=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradient_equal_torchs_with_ignored_targets(smoothing):
    given = outputs()
    own = given.logits.clone().requires_grad_()
    torchs = given.logits.clone().requires_grad_()

    loss = CrossEntropy(smoothing=smoothing)(Outputs(own, given.targets, given.mask))
    expected = F.cross_entropy(
        torchs.transpose(1, 2),
        given.targets.where(given.mask, -100),
        ignore_index=-100,
        label_smoothing=smoothing,
    )
    loss.backward()
    expected.backward()

    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(own.grad, torchs.grad, rtol=0, atol=1e-6)


def test_the_loss_is_zero_where_nothing_counts():
    given = outputs()
    logits = given.logits.clone().requires_grad_()
    nothing = Outputs(logits, given.targets, torch.zeros_like(given.mask))

    loss = CrossEntropy()(nothing)
    loss.backward()

    assert loss.item() == 0
    assert CrossEntropy().reference(nothing) == 0
    assert torch.count_nonzero(logits.grad) == 0


def test_half_precision_logits_are_summed_in_full_precision():
    given = outputs()
    half = Outputs(given.logits.bfloat16(), given.targets, given.mask)

    loss = CrossEntropy()(half)

    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(CrossEntropy().reference(half), abs=1e-5)


def test_it_has_no_weights():
    assert list(CrossEntropy().state_dict()) == []
