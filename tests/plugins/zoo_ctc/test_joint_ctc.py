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
    torch.testing.assert_close(loss, weight * losses[0] + (1 - weight) * losses[1])


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
