import math
import re

import pytest
import torch

from zoo import Outputs, ZooError
from zoo_draw.variational import Variational


def test_the_bound_of_a_case_worked_out_by_hand():
    # Two images of two pixels; a pixel that is 1 has the chance 3/4 and 1/2.
    logits = torch.tensor([[math.log(3), 0.0], [math.log(3), 0.0]])[..., None]
    targets = torch.tensor([[1.0, 1.0], [0.0, 0.5]])[..., None]
    kl = torch.tensor([[0.25, 0.5, 0.0], [1.0, 1.0, 1.0]])
    given = Outputs(logits, targets, torch.ones(2, 2).bool(), extras={"kl": kl})

    first = math.log(4 / 3) + math.log(2) + 0.75
    second = math.log(4) + math.log(2) + 3
    assert Variational()(given).item() == pytest.approx((first + second) / 2, abs=1e-6)


def test_an_image_of_which_nothing_counts_costs_nothing_with_its_codes():
    given = Variational().examples()[0]
    two = Outputs(given.logits[:2], given.targets[:2], given.mask[:2],
                  extras={"kl": given.extras["kl"][:2]})  # fmt: skip

    assert not given.mask[2].any()
    torch.testing.assert_close(Variational()(given), Variational()(two))


def test_in_bfloat16_it_is_computed_in_float32():
    given = Variational().examples()[0]
    extras = {"kl": given.extras["kl"].float()}

    half = Variational()(Outputs(given.logits.bfloat16(), given.targets, given.mask, extras=extras))

    assert half.dtype is torch.float32
    assert half.item() == pytest.approx(Variational()(given).item(), abs=0.02)


def test_what_it_cannot_score_is_refused():
    logits, mask = torch.zeros(1, 3, 1), torch.ones(1, 3).bool()
    message = (
        "objective 'variational' needs a target for each logit, but targets are [1, 3] and logits "
        "[1, 3, 1]"
    )
    with pytest.raises(ZooError, match=f"^{re.escape(message)}$"):
        Variational()(Outputs(logits, torch.zeros(1, 3).long(), mask))
    message = (
        "objective 'variational' needs 'kl' of the model, which gives nothing beside its logits"
    )
    with pytest.raises(ZooError, match=f"^{message}$"):
        Variational()(Outputs(logits, torch.zeros(1, 3, 1), mask))
