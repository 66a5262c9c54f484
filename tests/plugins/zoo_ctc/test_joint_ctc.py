import math
from dataclasses import replace

import pytest
import torch

from zoo import Outputs, SpecError, ZooError
from zoo.plugin import Blueprint
from zoo_ctc.ctc import Ctc
from zoo_ctc.joint_ctc import JointCtc
from zoo_objectives.cross_entropy import CrossEntropy

CROSS_ENTROPY = Blueprint.of(CrossEntropy, smoothing=0.1)


def joint_outputs():
    torch.manual_seed(0)
    targets = torch.tensor([[1, 2, 3], [2, 3, 0]])
    frames = torch.arange(6) < torch.tensor([[6], [4]])
    ctc_outputs = Outputs(torch.randn(2, 6, 4), targets, frames, target_mask=targets != 0)
    return Outputs(torch.randn(2, 3, 4), targets, targets != 0, auxiliary={"ctc": ctc_outputs})


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.9])
def test_loss_is_the_weighted_sum(weight):
    outputs = joint_outputs()
    loss = JointCtc(attention=CROSS_ENTROPY, weight=weight)(outputs)
    losses = Ctc()(outputs.auxiliary["ctc"]), CrossEntropy(smoothing=0.1)(outputs)
    torch.testing.assert_close(loss, weight * losses[0] + (1 - weight) * losses[1] * 5 / 2)


@pytest.mark.parametrize("weight", [0.2, 0.3, 0.5])
def test_loss_is_the_log_probability_of_the_sequences_as_torch_computes_it(weight):
    """λ log p_ctc + (1 - λ) log p_attention of each utterance, with torch's two losses."""
    outputs = joint_outputs()
    part = outputs.auxiliary["ctc"]
    ctc = torch.nn.CTCLoss(reduction="none")(
        part.logits.log_softmax(dim=-1).transpose(0, 1),
        part.targets,
        part.mask.sum(dim=1),
        part.target_mask.sum(dim=1),
    )
    attention = torch.nn.functional.cross_entropy(
        outputs.logits.transpose(1, 2), outputs.targets, ignore_index=0, reduction="none"
    ).sum(dim=1)
    expected = (weight * ctc + (1 - weight) * attention).mean()
    loss = JointCtc(attention=Blueprint.of(CrossEntropy), weight=weight)(outputs)
    torch.testing.assert_close(loss, expected)


def test_the_loss_of_two_equal_utterances_is_the_loss_of_one():
    outputs = joint_outputs()
    one = _take(outputs, torch.tensor([0]))
    joint = JointCtc(attention=CROSS_ENTROPY)
    torch.testing.assert_close(joint(_take(outputs, torch.tensor([0, 0]))), joint(one))
    both = (joint(one) + joint(_take(outputs, torch.tensor([1])))) / 2
    torch.testing.assert_close(joint(outputs), both)


def _take(outputs, rows):
    target_mask = outputs.target_mask
    return replace(
        outputs,
        logits=outputs.logits[rows],
        targets=outputs.targets[rows],
        mask=outputs.mask[rows],
        target_mask=None if target_mask is None else target_mask[rows],
        auxiliary={name: _take(part, rows) for name, part in outputs.auxiliary.items()},
    )


def test_version_2_keeps_the_mean_over_targets():
    outputs = joint_outputs()
    params, _ = JointCtc.migrate(2, {"weight": 0.4}, {})
    loss = JointCtc(attention=CROSS_ENTROPY, **params)(outputs)
    losses = Ctc()(outputs.auxiliary["ctc"]), CrossEntropy(smoothing=0.1)(outputs)
    torch.testing.assert_close(loss, 0.4 * losses[0] + 0.6 * losses[1])


def test_parameters_are_passed_to_ctc():
    outputs = joint_outputs()
    joint = JointCtc(attention=CROSS_ENTROPY, blank=3, per_target=True, impossible="zero")
    ctc = Ctc(blank=3, per_target=True, impossible="zero")
    part = replace(
        outputs.auxiliary["ctc"],
        mask=torch.arange(6).expand(2, 6) < 2,
        targets=torch.tensor([[1, 0, 0], [2, 2, 0]]),  # the second has no path in two frames
        target_mask=torch.tensor([[True, False, False], [True, True, False]]),
    )
    loss = joint(replace(outputs, auxiliary={"ctc": part}))
    expected = 0.3 * ctc(part) + 0.7 * CrossEntropy(smoothing=0.1)(outputs)
    torch.testing.assert_close(loss, expected)
    assert loss.isfinite()
    unbounded = JointCtc(attention=CROSS_ENTROPY, blank=3)
    assert unbounded(replace(outputs, auxiliary={"ctc": part})) == math.inf


def test_gradients_reach_both_heads():
    outputs = joint_outputs()
    logits = [
        tensor.requires_grad_() for tensor in (outputs.logits, outputs.auxiliary["ctc"].logits)
    ]
    for gradient in torch.autograd.grad(JointCtc(attention=CROSS_ENTROPY)(outputs), logits):
        assert gradient.abs().sum() > 0


def test_a_model_with_one_head_raises():
    outputs = replace(joint_outputs(), auxiliary={})
    with pytest.raises(ZooError, match=r"'joint-ctc'.*'ctc'.*none"):
        JointCtc(attention=CROSS_ENTROPY)(outputs)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_weight_of_zero_or_one_raises(weight):
    with pytest.raises(SpecError, match="weight"):
        Blueprint.of(JointCtc, attention=CROSS_ENTROPY, weight=weight)


def test_the_weight_is_the_number_of_items_unless_a_loss_is_a_mean_over_targets():
    attention = Blueprint.of(CrossEntropy)
    summed = JointCtc(attention=attention)
    outputs = summed.examples()[0]
    assert summed.mergeable
    assert summed.weight(outputs).item() == len(outputs.mask)
    mean = JointCtc(attention=attention, attention_reduction="mean")
    assert not mean.mergeable
    with pytest.raises(ZooError, match=r"'joint-ctc'.*attention_reduction to 'sum'"):
        mean.weight(outputs)
