"""The update of a training loop of one's own."""

import pytest
import torch

import zoo
from zoo.acceleration import is_accelerated

NAME = "transformer-tiny"


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_training_step_is_a_step_written_by_hand(precision):
    generator = torch.Generator().manual_seed(0)
    batches = [zoo.compose(NAME).example(3, 5, generator) for _ in range(3)]

    model = zoo.compose(NAME, seed=0)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    step = zoo.training_step(model, zoo.objective(NAME), optimiser, clip=0.5, precision=precision)
    torch.manual_seed(0)
    step.set_lr(0.5)
    found = [step(batch) for batch in batches]

    plain = zoo.accelerate(zoo.compose(NAME, seed=0))
    objective, optimiser = zoo.objective(NAME), torch.optim.SGD(plain.parameters(), lr=0.05)
    torch.manual_seed(0)
    for batch, (loss, norm) in zip(batches, found, strict=True):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            expected = objective(plain(batch))
        expected.backward()
        before = torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
        optimiser.step()
        optimiser.zero_grad()
        torch.testing.assert_close((loss, norm), (expected.detach(), before))
    torch.testing.assert_close(model.state_dict(), plain.state_dict())


def test_a_training_step_has_all_accelerations():
    """Of the model, of the model with its objective, and of the step, which a GPU captures."""
    model = zoo.compose(NAME)
    step = zoo.training_step(model, zoo.objective(NAME), torch.optim.SGD(model.parameters()))
    parts = [step, step.module, *model.modules()]
    accelerated = zoo.accelerate(zoo.compose(NAME))
    assert [is_accelerated(part) for part in parts[2:]] == [
        is_accelerated(part) for part in accelerated.modules()
    ]
    assert is_accelerated(step)
    assert is_accelerated(step.module)
