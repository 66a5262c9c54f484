"""Memory of each device and communication of a training, without allocating it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces import Model
from zoo.registry.blueprint import format_error
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.composition import build_on_meta
from zoo.spec.initialisation import find_weights
from zoo.spec.spec import Source, Spec, load_spec
from zoo.spec.training import Training
from zoo.training.plan_options import BatchSize, Devices, default_batch
from zoo.training.step_memory import StepMemory, measure_step, total_bytes

Precision = Literal["float32", "bfloat16"]
WORKSPACE = 32 * 2**20
"""Bytes that cuBLAS allocates on a Hopper GPU; 8 MB on older ones."""
PREFETCHED = 2
"""Blocks of FSDP that are gathered at the same time: the current one and the next."""


@dataclass(frozen=True)
class Plan:
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
    registry: ComponentRegistry | None = None,
) -> Plan:
    """Plan the training of a valid spec on some devices.

    A training step runs on tensors without values, with the precision, optimiser, accumulation and
    averaging of the section ``train``.

    Args:
        batch: the batch of one device in one forward pass; by default its share of ``train.batch``.
        precision: the precision; by default ``train.precision``, or float32 without ``train``.
    """
    spec = load_spec(source, overrides=overrides, registry=registry)
    training = spec.sections.train.build() if spec.sections.train else None
    size, origin = (batch, "option") if batch else default_batch(training, devices)
    model: Model = build_on_meta(spec).part
    blocks = _block_bytes(model)
    chosen = precision or (training.precision if training else "float32")
    step = _measure(spec, model, training, size, chosen)
    accumulate = training.accumulate if training else 1
    averaged = bool(training and training.average and training.average.ema)
    compute_ratio = 0.5 if chosen == "bfloat16" else 1.0
    layout = _Layout(devices, step, averaged, accumulate, blocks, compute_ratio)
    sizes = layout.sizes()
    at_peak = layout.at_peak()
    return Plan(
        name=spec.name,
        plan=str(devices),
        devices=devices.count,
        batch=str(size),
        sizes=sizes,
        at_peak=at_peak,
        total=sum(at_peak.values()),
        communication=layout.communication(),
        settings={"batch": origin, **_settings(training, precision)},
    )


@dataclass(frozen=True)
class _Layout:
    """The bytes of a training step, distributed over devices."""

    devices: Devices
    step: StepMemory
    averaged: bool
    accumulate: int
    blocks: tuple[int, int]  # weights outside of blocks, and of the largest block
    compute_ratio: float  # bytes of an element in the computation / in the weights

    def sizes(self) -> dict[str, int]:
        step, share = self.step, self._share
        parts = {
            "weights": share(step.weights),
            "gradients": share(step.gradients),
            "optimiser": share(step.optimiser),
        }
        if self.averaged:
            parts["averaged weights"] = share(step.weights)
        return parts | {"activations": step.activations}

    def at_peak(self) -> dict[str, int]:
        step = self.step
        sizes = self.sizes()
        if self.devices.strategy == "fsdp":
            outside, block = (int(size * self.compute_ratio) for size in self.blocks)
            sizes.pop("activations")
            sizes["gathered weights"] = outside + PREFETCHED * block
            sizes["gathered gradients"] = block
            sizes["activations and temporary"] = step.transient_peak
        else:
            found = step.at_peak
            kept = step.gradients - found.get("gradients", 0) if self.accumulate > 1 else 0
            sizes["gradients"] = found.get("gradients", 0) + kept
            if found.get("copies"):
                sizes["bfloat16 weights"] = found["copies"]
            sizes["activations"] = found.get("activations", 0) + found.get("batch", 0)
            sizes["temporary"] = found.get("temporary", 0)
        if self.devices.strategy == "ddp":
            sizes["gradient buckets"] = step.gradients
        return sizes | {"workspace": WORKSPACE}

    def communication(self) -> dict[str, int]:
        count = self.devices.count
        fraction = (count - 1) / count
        gradients = self.step.gradients
        if self.devices.strategy == "fsdp":
            weights = gradients * self.compute_ratio
            return {
                "all-gather": int(2 * self.accumulate * fraction * weights),
                "reduce-scatter": int(fraction * weights),
            }
        return {"all-reduce": int(2 * fraction * gradients)} if count > 1 else {}

    def _share(self, size: int) -> int:
        return -(-size // self.devices.count) if self.devices.strategy == "fsdp" else size


def _measure(
    spec: Spec, model: Model, training: Training | None, size: BatchSize, precision: Precision
) -> StepMemory:
    objective = spec.sections.objective.build() if spec.sections.objective else None

    def make_optimiser(trained: Model) -> torch.optim.Optimizer:
        if training is None:
            return torch.optim.AdamW(trained.parameters(), fused=True)
        return training.optimiser.build().build(list(find_weights(trained)))

    try:
        return measure_step(
            model,
            objective,
            lambda trained: make_batch(trained, size),
            make_optimiser,
            precision=precision,
        )
    except ZooError:
        raise
    except Exception as error:
        raise ZooError(
            f"a training step with a batch of {size} failed: {format_error(error)}; set --batch"
        ) from error


def make_batch(model: Model, size: BatchSize) -> dict[str, Tensor]:
    """Return a random batch of a size, on the device of the model."""
    batch = model.example(size.items, size.lengths[0])
    if len(size.lengths) == 1:
        return batch
    schema = model.batch_schema() or {}
    if len(schema) < 2 or "target" not in schema or schema["target"].dims != ("B", "T"):
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
    if training and training.average and training.average.ema:
        settings["average"] = f"ema {training.average.ema} (train)"
    return settings


def _block_bytes(model: nn.Module) -> tuple[int, int]:
    """Return the bytes of the weights outside of all blocks, and of the largest block.

    The blocks of FSDP are the modules of the outermost lists of modules, such as layers.
    """
    blocks = list(_find_blocks(model))
    sizes = [total_bytes(block.parameters()) for block in blocks]
    inside = {id(weight) for block in blocks for weight in block.parameters()}
    outside = (weight for weight in model.parameters() if id(weight) not in inside)
    return total_bytes(outside), max(sizes, default=0)


def _find_blocks(module: nn.Module) -> Iterable[nn.Module]:
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from _find_blocks(child)
