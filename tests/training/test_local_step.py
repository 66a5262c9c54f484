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


def _steps(optimiser_of, adapted=False):
    """Return a training step, and a model, objective and optimiser for a loop written by hand."""
    spec = zoo.load_spec(NAME).resolve()
    adapters = {"task": {"type": "lora", "rank": 2, "targets": ["encoder.blocks"]}}
    spec = {**spec, "adapters": adapters} if adapted else spec
    models = [zoo.compose(spec, seed=0) for _ in range(2)]
    optimisers = [
        optimiser_of([p for p in model.parameters() if p.requires_grad]) for model in models
    ]
    step = zoo.training_step(models[0], zoo.objective(NAME), optimisers[0], clip=0.5)
    return step, models[1], zoo.objective(NAME), optimisers[1]


def _batches(model, count):
    generator = torch.Generator().manual_seed(0)
    return [model.example(3, 5, generator) for _ in range(count)]


@pytest.mark.parametrize("adapted", [False, True])
def test_accumulation_schedulers_and_evaluations_between_have_the_results_of_a_plain_loop(adapted):
    step, model, objective, optimiser = _steps(
        lambda weights: torch.optim.SGD(weights, lr=0.01, momentum=0.9), adapted
    )
    schedulers = [
        torch.optim.lr_scheduler.OneCycleLR(each, max_lr=0.1, total_steps=4)
        for each in (step.optimiser, optimiser)
    ]
    batches = _batches(model, 8)
    for index in range(4):
        pair = batches[2 * index : 2 * index + 2]
        for each in pair:
            step.compute_gradients(each, scale=1 / 2)
            (objective(model(each)) / 2).backward()
        norm = step.optimise()
        expected = torch.nn.utils.clip_grad_norm_(optimiser.param_groups[0]["params"], 0.5)
        torch.testing.assert_close(norm, expected)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        for scheduler in schedulers:
            scheduler.step()
        for each in (step.model, model):  # an evaluation between
            each.eval()
            with torch.no_grad():
                each(pair[0])
            each.train()
    torch.testing.assert_close(step.model.state_dict(), model.state_dict())


def test_an_optimizer_that_needs_a_closure_is_rejected():
    with pytest.raises(zoo.ZooError, match=r"LBFGS computes the loss several times.*accelerate"):
        _steps(lambda weights: torch.optim.LBFGS(weights))
