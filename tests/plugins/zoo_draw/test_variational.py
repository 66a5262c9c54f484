import math

import pytest
import torch

from zoo import Outputs, ZooError
from zoo_draw.variational import Variational


def test_known_value():
    # Two images of two pixels, which are 1 with probability 3/4 and 1/2.
    logits = torch.tensor([[math.log(3), 0.0], [math.log(3), 0.0]])[..., None]
    targets = torch.tensor([[1.0, 1.0], [0.0, 0.5]])[..., None]
    kl = torch.tensor([[0.25, 0.5, 0.0], [1.0, 1.0, 1.0]])
    outputs = Outputs(logits, targets, torch.ones(2, 2).bool(), extras={"kl": kl})

    first = math.log(4 / 3) + math.log(2) + 0.75
    second = math.log(4) + math.log(2) + 3
    assert Variational()(outputs).item() == pytest.approx((first + second) / 2, abs=1e-6)


def test_a_fully_masked_image_is_ignored():
    outputs = Variational().examples()[0]
    two = Outputs(outputs.logits[:2], outputs.targets[:2], outputs.mask[:2],
                  extras={"kl": outputs.extras["kl"][:2]})  # fmt: skip

    assert not outputs.mask[2].any()
    torch.testing.assert_close(Variational()(outputs), Variational()(two))


def test_in_bfloat16_it_is_computed_in_float32():
    outputs = Variational().examples()[0]
    extras = {"kl": outputs.extras["kl"].float()}

    half = Variational()(
        Outputs(outputs.logits.bfloat16(), outputs.targets, outputs.mask, extras=extras)
    )

    assert half.dtype is torch.float32
    assert half.item() == pytest.approx(Variational()(outputs).item(), abs=0.02)


def test_missing_targets_and_missing_kl_raise():
    logits, mask = torch.zeros(1, 3, 1), torch.ones(1, 3).bool()
    with pytest.raises(ZooError, match=r"'variational'.*\[1, 3\].*\[1, 3, 1\]"):
        Variational()(Outputs(logits, torch.zeros(1, 3).long(), mask))
    with pytest.raises(ZooError, match=r"'variational'.*'kl'"):
        Variational()(Outputs(logits, torch.zeros(1, 3, 1), mask))


def test_the_weight_is_the_number_of_images_that_are_not_masked():
    assert [Variational().weight(o).item() for o in Variational().examples()] == [2, 2]
