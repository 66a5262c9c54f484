"""Preparation of steps that are captured as CUDA graphs, and the reasons why they are not."""

from copy import deepcopy

import pytest
import torch
from training_kit import make_spec, write_files

import zoo
from zoo.acceleration.binding import bound_accelerations
from zoo.training.local_step import LocalStep, LossModule
from zoo.training.processes import Processes
from zoo.training.recomputation import recompute_parts
from zoo.training.setup import build_setup, read_request
from zoo_fast.training.capture import make_capturable, why_not_captured

CUDA = torch.device("cuda")


def build(name="transformer-tiny"):
    torch.manual_seed(0)
    model = zoo.compose(name).eval()
    return model, LossModule(model, zoo.objective(name))


def test_reasons():
    model, module = build()
    adam = torch.optim.Adam(model.parameters())
    assert why_not_captured(module, adam, CUDA) is None
    reason = why_not_captured(module, adam, torch.device("cpu"))
    assert reason == "the device is 'cpu', not 'cuda'"
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    assert why_not_captured(module, sgd, CUDA) == (
        "optimiser SGD has no option 'capturable' or 'fused'"
    )
    with torch.no_grad():
        handle = model.register_forward_hook(lambda *_: None)
    assert why_not_captured(module, adam, CUDA) == "the model has module hooks"
    handle.remove()
    assert why_not_captured(module, adam, CUDA) is None


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_step_of_a_run_can_be_captured(precision, tmp_path):
    spec = make_spec(write_files(tmp_path), precision=precision, validation=None)
    processes = Processes(tmp_path, device="cpu", precision=precision)
    try:
        setup = build_setup(read_request(spec, (), None, None), processes)
        step = setup.step.local
        assert why_not_captured(step.module, step.optimiser, CUDA) is None
        (batch,) = next(iter(setup.batches.epoch(0))).batches
        module = zoo.accelerate(deepcopy(setup.loss_module))
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            expected = module(batch)
        assert torch.equal(setup.step([batch]).loss, expected)
        setup.close()
    finally:
        processes.close()


def test_recomputed_parts_are_not_captured():
    model, module = build()
    adam = torch.optim.Adam(model.parameters())
    recompute_parts(model, ["encoder.blocks.0"])
    assert why_not_captured(module, adam, CUDA) == (
        "a part of the model has another forward method, such as one that is recomputed"
    )


def test_learning_rate_is_a_tensor_that_the_schedule_fills():
    model, module = build()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.5)
    step = LocalStep(module, model, optimiser, device=torch.device("cpu"))
    make_capturable(optimiser)
    (group,) = optimiser.param_groups
    lr = group["lr"]
    step.set_lr(0.25)
    assert group["lr"] is lr
    assert (lr.item(), step.lr, group["capturable"]) == (0.125, 0.125, True)


def test_steps_on_the_cpu_are_not_captured():
    model, module = build()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    cpu = torch.device("cpu")
    step = zoo.accelerate(LocalStep(module, model, optimiser, device=cpu))
    batch = model.example(2, 5, torch.Generator().manual_seed(0))
    first, norm = step(batch)
    assert norm is None
    assert step(batch)[0] < first
    (captured,) = bound_accelerations(step)
    assert captured.name == "captured-step"
    assert captured.why_not(step, cpu) == "the device is 'cpu', not 'cuda'"
