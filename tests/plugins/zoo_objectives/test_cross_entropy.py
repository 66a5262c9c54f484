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


def test_loss_is_the_mean_negative_log_likelihood():
    # Probabilities 1/4 and 3/4 at both steps.
    logits = torch.tensor([[[0.0, math.log(3)], [0.0, math.log(3)]]])
    targets = torch.tensor([[0, 1]])

    loss = CrossEntropy()(Outputs(logits, targets, torch.ones(1, 2, dtype=torch.bool)))

    assert loss.shape == ()
    assert loss.item() == pytest.approx((math.log(4) + math.log(4 / 3)) / 2, abs=1e-6)


def test_smoothing_spreads_mass_over_the_vocabulary():
    logits = torch.tensor([[[0.0, math.log(3)]]])

    loss = CrossEntropy(smoothing=0.1)(
        Outputs(logits, torch.tensor([[1]]), torch.ones(1, 1, dtype=torch.bool))
    )

    # The target has 0.9 + 0.1 / 2 of the mass, the other 0.1 / 2.
    expected = -(0.95 * math.log(3 / 4) + 0.05 * math.log(1 / 4))
    assert loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_loss_matches_the_formula_written_as_loops(smoothing):
    batch = outputs()
    total, count = 0.0, 0
    for b in range(3):
        for t in range(4):
            if batch.mask[b, t]:
                row = batch.logits[b, t].double().tolist()
                log_normaliser = math.log(sum(math.exp(x) for x in row))
                logprobs = [x - log_normaliser for x in row]
                target = logprobs[int(batch.targets[b, t])]
                total -= (1 - smoothing) * target + smoothing / 5 * sum(logprobs)
                count += 1
    assert count == 5

    objective = CrossEntropy(smoothing=smoothing)

    assert objective(batch).item() == pytest.approx(total / count, abs=1e-5)
    assert objective.reference(batch) == pytest.approx(total / count, abs=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradient_match_torch_with_ignored_targets(smoothing):
    batch = outputs()
    ours = batch.logits.clone().requires_grad_()
    theirs = batch.logits.clone().requires_grad_()

    loss = CrossEntropy(smoothing=smoothing)(Outputs(ours, batch.targets, batch.mask))
    expected = F.cross_entropy(
        theirs.transpose(1, 2),
        batch.targets.where(batch.mask, -100),
        ignore_index=-100,
        label_smoothing=smoothing,
    )
    loss.backward()
    expected.backward()

    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=1e-6)


def test_loss_of_fully_masked_outputs_is_zero():
    batch = outputs()
    logits = batch.logits.clone().requires_grad_()
    masked = Outputs(logits, batch.targets, torch.zeros_like(batch.mask))

    loss = CrossEntropy()(masked)
    loss.backward()

    assert loss.item() == 0
    assert CrossEntropy().reference(masked) == 0
    assert torch.count_nonzero(logits.grad) == 0


def test_half_precision_logits_are_summed_in_full_precision():
    batch = outputs()
    half = Outputs(batch.logits.bfloat16(), batch.targets, batch.mask)

    loss = CrossEntropy()(half)

    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(CrossEntropy().reference(half), abs=1e-5)


def test_it_has_no_parameters():
    assert list(CrossEntropy().state_dict()) == []
