"""Memory of a training step, from a run on tensors without values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from zoo.acceleration import accelerate
from zoo.interfaces import Model, Objective
from zoo.plugin import reference
from zoo.registry.plugin_call import PluginCall
from zoo.training.local_step import LossModule
from zoo_lab.plan.cuda_kernels import CudaKernels
from zoo_lab.plan.memory_tracker import BLOCK, MemoryTracker

PERSISTENT = ("weights", "gradients", "optimiser")

OptimiserFactory = Callable[[Model], torch.optim.Optimizer]


@dataclass(frozen=True)
class StepMemory:
    """Bytes of one training step on one device.

    Attributes:
        weights: parameters and buffers.
        gradients: the gradients of all trainable parameters.
        optimiser: the state of the optimiser.
        activations: what is allocated when the loss is computed, except the above and the batch.
        peak: the maximum during the step.
        at_peak: the bytes of each part at that time; ``temporary`` are tensors of the backward
            pass and of the optimiser.
        transient_peak: the maximum without weights, gradients and state of the optimiser.
    """

    weights: int
    gradients: int
    optimiser: int
    activations: int
    peak: int
    at_peak: Mapping[str, int]
    transient_peak: int


def measure_step(
    model: Model,
    objective: Objective | None,
    make_batch: Callable[[Model], Mapping[str, Tensor]],
    make_optimiser: OptimiserFactory,
    *,
    precision: str,
    keeps_logits: bool = False,
) -> StepMemory:
    """Run a training step of a model on the meta device with fake tensors, and track its memory.

    The model is changed: its parameters are fake tensors afterwards.

    Args:
        keeps_logits: whether all logits are computed before the loss, as those of sharded and
            compiled models, and not with it in parts.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        _replace_tensors(model)
        model.train()
        optimiser = make_optimiser(model)
        tracker = MemoryTracker(persistent=PERSISTENT)
        with tracker:
            tracker.assign([*model.parameters(), *model.buffers()], "weights")
            trained = _create_optimiser_state(model, optimiser, tracker)
            tracker.category = "batch"
            batch = make_batch(model)
            tracker.reset_peak()
            activations = _run_step(
                model, objective, batch, precision, tracker, optimiser, keeps_logits=keeps_logits
            )
    return StepMemory(
        weights=tracker.live["weights"],
        gradients=total_bytes(trained),
        optimiser=tracker.live["optimiser"],
        activations=activations,
        peak=tracker.peak,
        at_peak=tracker.at_peak,
        transient_peak=tracker.transient_peak,
    )


def total_bytes(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of tensors as the CUDA allocator rounds them."""
    sizes = (tensor.numel() * tensor.element_size() for tensor in tensors)
    return sum(-(-size // BLOCK) * BLOCK for size in sizes)


def _replace_tensors(model: nn.Module) -> None:
    """Replace the parameters and buffers on the meta device by fake tensors of the CPU."""
    created: dict[int, Tensor] = {}
    for module in model.modules():
        for name, weight in module._parameters.items():
            if weight is not None and id(weight) not in created:
                empty = torch.empty_like(weight, device="cpu")
                created[id(weight)] = nn.Parameter(empty, requires_grad=weight.requires_grad)
            if weight is not None:
                module._parameters[name] = created[id(weight)]  # type: ignore[assignment]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = torch.empty_like(buffer, device="cpu")


def _create_optimiser_state(
    model: Model, optimiser: torch.optim.Optimizer, tracker: MemoryTracker
) -> list[nn.Parameter]:
    """Run one step of the optimiser and return the parameters that it trains."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    for weight in trained:
        weight.grad = torch.empty_like(weight)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    states = (value for state in optimiser.state.values() for value in state.values())
    tracker.assign((value for value in states if isinstance(value, Tensor)), "optimiser")
    for weight in trained:
        weight.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
            lambda parameter: tracker.assign([parameter.grad], "gradients")
        )
    return trained


def _run_step(
    model: Model,
    objective: Objective | None,
    batch: Mapping[str, Tensor],
    precision: str,
    tracker: MemoryTracker,
    optimiser: torch.optim.Optimizer,
    *,
    keeps_logits: bool,
) -> int:
    """Run forward pass, backward pass and optimiser; return the bytes of the activations."""
    tracker.category = "activations"
    activations = 0

    def measure(*_: object) -> None:
        nonlocal activations
        activations = tracker.live["activations"]

    with ExitStack() as stack:
        stack.enter_context(PluginCall())
        stack.enter_context(CudaKernels())
        if precision == "bfloat16":
            stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
        if objective is None:
            outputs = model(batch)
            loss = outputs.logits.float().sum()
            measure()
            del outputs
        else:
            # The outputs of the model are allocated until the loss is returned.
            stack.callback(objective.register_forward_hook(measure).remove)
            module = accelerate(LossModule(model, objective))
            # The parts are accelerated in both cases.
            loss = reference(module, "forward")(batch) if keeps_logits else module(batch)
    tracker.category = "temporary"
    loss.backward()
    del loss
    optimiser.step()
    return activations
