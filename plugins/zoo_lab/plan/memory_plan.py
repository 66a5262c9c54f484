"""Memory of each device and communication of a training, without allocating it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.interfaces import Model
from zoo.registry.blueprint import format_error
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.composition import build_on_meta
from zoo.spec.rate_groups import build_optimiser
from zoo.spec.spec import Source, Spec, load_spec
from zoo.spec.trainability import last_unfreezing, set_trained
from zoo.spec.training import Training
from zoo.training.recomputation import recompute_parts
from zoo.training.start import freeze_base
from zoo_lab.plan.cuda_kernels import CudaKernels
from zoo_lab.plan.distribution import Distribution, block_bytes
from zoo_lab.plan.plan_options import BatchSize, Devices, default_batch
from zoo_lab.plan.step_memory import StepMemory, measure_step

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes on each device, and bytes that each device sends per update of the weights.

    Attributes:
        sizes: the size of weights, gradients, state of the optimiser, averaged weights and
            activations.
        at_peak: the bytes of each part when the most memory is allocated; their sum is `total`.
        communication: bytes sent per update, by collective operation.
        settings: what the plan assumes, and where it comes from.
    """

    name: str
    plan: str
    devices: int
    batch: str
    sizes: Mapping[str, int]
    at_peak: Mapping[str, int]
    total: int
    communication: Mapping[str, int]
    settings: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def make_plan(
    source: Source,
    devices: Devices,
    *,
    batch: BatchSize | None = None,
    precision: Precision | None = None,
    overrides: Iterable[str] = (),
    start: Mapping[str, Any] | None = None,
    registry: ComponentRegistry | None = None,
) -> MemoryPlan:
    """Plan the training of a valid spec on some devices.

    A training step runs on tensors without values, with the precision, optimiser, accumulation and
    averaging of the section ``train``: a step after everything in ``unfreeze`` is trained.

    Args:
        batch: the batch of one device in one forward pass; by default its share of ``train.batch``.
        precision: the precision; by default ``train.precision``, or float32 without ``train``.
        start: the base that the training starts from, as `StartPlan.record` returned it.
    """
    spec = load_spec(source, overrides=overrides, registry=registry)
    training = spec.sections.train.build() if spec.sections.train else None
    size, origin = (batch, "option") if batch else default_batch(training, devices)
    model: Model = build_on_meta(spec).part
    blocks = block_bytes(model)
    if start is not None:
        freeze_base(model, start)
    if training is not None:
        set_trained(model, training, last_unfreezing(training))
        recompute_parts(model, training.checkpointing, context=CudaKernels)
    parameter_bytes = {w: w.numel() * w.element_size() for w in model.parameters()}
    trained = sum(size for weight, size in parameter_bytes.items() if weight.requires_grad)
    chosen = precision or (training.precision if training else "float32")
    keeps_logits = devices.strategy == "fsdp" or bool(training and training.compile)
    step = _measure(spec, model, training, size, chosen, keeps_logits=keeps_logits)
    accumulate = training.accumulate if training else 1
    averaged = bool(training and training.average and training.average.ema)
    distribution = Distribution(
        devices=devices,
        step=step,
        averaged=averaged,
        accumulate=accumulate,
        parameters=sum(parameter_bytes.values()),
        trained=trained,
        blocks=blocks,
    )
    sizes = distribution.sizes()
    at_peak = distribution.at_peak()
    return MemoryPlan(
        name=spec.name,
        plan=str(devices),
        devices=devices.count,
        batch=str(size),
        sizes=sizes,
        at_peak=at_peak,
        total=sum(at_peak.values()),
        communication=distribution.communication(),
        settings={"batch": origin, **_settings(training, precision)},
    )


def _measure(
    spec: Spec,
    model: Model,
    training: Training | None,
    size: BatchSize,
    precision: Precision,
    *,
    keeps_logits: bool,
) -> StepMemory:
    objective = spec.sections.objective.build() if spec.sections.objective else None

    def make_optimiser(trained: Model) -> torch.optim.Optimizer:
        if training is None:
            return torch.optim.AdamW(trained.parameters(), fused=True)
        return build_optimiser(training, trained)

    try:
        return measure_step(
            model,
            objective,
            lambda trained: make_batch(trained, size),
            make_optimiser,
            precision=precision,
            keeps_logits=keeps_logits,
        )
    except Exception as error:
        raise ZooError(
            f"a training step with a batch of {size} failed: {format_error(error)}; set another "
            "batch with --batch"
        ) from error


def make_batch(model: Model, size: BatchSize) -> dict[str, Tensor]:
    """Return a random batch of a size, on the device of the model."""
    batch = model.example(size.items, size.lengths[0])
    if len(size.lengths) == 1:
        return batch
    schema = model.batch_schema() or {}
    if "source" not in schema or "target" not in schema or schema["target"].dims != ("B", "T"):
        raise ZooError(
            f"model '{model.name}' has one length, but the batch {size} has two; expected "
            "ITEMSxLENGTH"
        )
    length = size.lengths[1]
    return batch | {"target": model.example(size.items, length)["target"][:, :length]}


def _settings(training: Training | None, precision: Precision | None) -> dict[str, str]:
    origin = "train" if training else "default"
    optimiser = training.optimiser.label if training else "adamw"
    accumulate = training.accumulate if training else 1
    settings = {
        "optimiser": f"{optimiser} ({origin})",
        "precision": f"{precision} (option)"
        if precision
        else f"{training.precision if training else 'float32'} ({origin})",
        "accumulate": f"{accumulate} ({origin})",
    }
    if training and training.freeze:
        settings["freeze"] = f"{', '.join(training.freeze)} (train)"
    if training and training.unfreeze:
        later = [f"{', '.join(each.match)} after step {each.at:,}" for each in training.unfreeze]
        settings["unfreeze"] = f"{', '.join(later)} (train; the plan is of the steps after it)"
    if training and training.checkpointing:
        settings["checkpointing"] = "blocks are computed again in the backward pass (train)"
    if training and training.average and training.average.ema:
        settings["average"] = f"ema {training.average.ema} (train)"
    return settings
