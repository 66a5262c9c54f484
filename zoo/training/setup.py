"""Everything that a training run uses, built from its spec."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from zoo.acceleration import accelerate
from zoo.adapters import reset_adapters
from zoo.data.batches import Batches, open_batches
from zoo.data.preprocessing import fit_preprocessors
from zoo.data.unknown_tokens import warn_unknown_tokens
from zoo.errors import MissingExtra, Problem, SpecError, ZooError, suggest
from zoo.evaluation.datasets import limit_examples
from zoo.interfaces import Filter, Metric, Model, Objective, Sampler, Schedule
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.composition import build_model, build_on_meta
from zoo.spec.memory import check_memory, check_training_memory, model_bytes
from zoo.spec.rate_groups import build_optimiser
from zoo.spec.spec import Source, Spec
from zoo.spec.trainability import last_unfreezing, set_trained
from zoo.spec.training import Batching, Training
from zoo.training.averages import MovingAverage
from zoo.training.inherited import Resumed, StartedSpec, read_started
from zoo.training.local_step import COMPILER_OPTIONS, LossModule
from zoo.training.monitor import check_monitor
from zoo.training.objective_fit import fit_objective
from zoo.training.processes import Processes
from zoo.training.recomputation import recompute_parts
from zoo.training.start import freeze_base
from zoo.training.step import GlobalStep
from zoo.training.whole_batch import calls_whole_batch, compares_examples

_LOCAL = ("tensorboard",)
"""Trackers that write to the folder of the run only."""
_PACKAGES = {"comet_ml": "comet-ml"}
"""Names of trackers that are not the name of their package."""


def check_trackers(spec: Spec, training: Training, allowed: Collection[str]) -> None:
    """Raise SpecError for trackers that cannot be used.

    A spec may come from a third party, and most trackers send the spec and the results to a server,
    so they are used only if the caller names them too.
    """
    section = spec.sections.train
    log = section.params.get("log") if section else None
    problems = []
    for i, name in enumerate(training.log.trackers):
        message = _why_not(name, allowed)
        if message is not None:
            place = log.places.get(f"trackers[{i}]") if log else None
            problems.append(Problem(message, f"train.log.trackers[{i}]", place))
    if problems:
        raise SpecError(problems)


def _why_not(name: str, allowed: Collection[str]) -> str | None:
    """Return why a tracker cannot be used, or None."""
    try:
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers
        from accelerate.utils import LoggerType
    except ImportError:
        raise MissingExtra("training", library="accelerate", extra="train") from None
    if name not in LOGGER_TYPE_TO_CLASS:
        return f"'{name}' is not a tracker of Accelerate{suggest(name, LOGGER_TYPE_TO_CLASS)}"
    if name in LoggerType.list() and name not in map(str, get_available_trackers()):
        package = _PACKAGES.get(name, name)
        return f"tracker '{name}' is not installed; install it with: pip install {package}"
    if name not in (*_LOCAL, *allowed):
        return (
            f"tracker '{name}' can send the spec and the results to a server; allow it with "
            f"--allow-tracker {name} (in Python: allow_trackers=['{name}']), or remove it"
        )
    return None


@dataclass(frozen=True)
class Request:
    """A checked spec, its section ``train``, and what the training starts from."""

    started: StartedSpec
    training: Training
    registry: ComponentRegistry | None

    @property
    def spec(self) -> Spec:
        return self.started.spec


def read_request(
    source: Source,
    overrides: Iterable[str],
    seed: int | None,
    registry: ComponentRegistry | None,
    allow_trackers: Collection[str] = (),
    resumed: Resumed | None = None,
) -> Request:
    """Check a spec; raise ZooError if it does not describe a training."""
    texts = [*overrides, *([] if seed is None else [f"train.seed={seed}"])]
    started = read_started(source, texts, registry=registry, resumed=resumed)
    spec = started.spec
    sections = spec.sections
    if sections.train is None:
        raise ZooError(
            f"spec '{spec.name}' has no section 'train'; it needs at least data, optimiser, and "
            "steps or epochs"
        )
    if sections.objective is None:
        raise ZooError(f"spec '{spec.name}' has no objective; add one: 'objective: cross-entropy'")
    training = sections.train.build()
    check_monitor(spec, training)
    check_trackers(spec, training, allow_trackers)
    return Request(started, training, registry)


@dataclass
class Setup:
    """The built parts of a run.

    Attributes:
        loss_module: the model with its objective, before it is wrapped for several processes.
        steps: number of steps of the whole run.
    """

    request: Request
    processes: Processes
    model: Model
    loss_module: LossModule
    objective: Objective
    batches: Batches
    validation: Batches | None
    step: GlobalStep
    schedule: Schedule | None
    average: MovingAverage | None
    steps: int
    metrics: list[Metric] = field(default_factory=list)
    sampler: Sampler | None = None
    filters: list[Filter] = field(default_factory=list)

    @property
    def training(self) -> Training:
        return self.request.training

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        return self.step.local.optimiser

    def unfreeze(self, step: int) -> None:
        """Train what is unfrozen after a number of steps; the optimiser keeps its state.

        The step is built again: DistributedDataParallel and captured steps have the parameters
        that they were built with.
        """
        old = self.optimiser.state
        set_trained(self.model, self.training, step)
        self.step = build_step(self.request, self.processes, self.loss_module, self.steps)
        self.optimiser.state.update({p: old[p] for p in self.step.local.parameters if p in old})

    @property
    def failure(self) -> str | None:
        """Why workers that read data could not go on; None if they can."""
        return self.batches.failure or (self.validation.failure if self.validation else None)

    def close(self) -> None:
        """End the workers that read data."""
        self.batches.close()
        if self.validation is not None:
            self.validation.close()


def build_setup(
    request: Request, processes: Processes, progress: Any = None, *, step: int = 0
) -> Setup:
    """Build the model, open the data, and create optimiser and schedule.

    Args:
        step: the number of steps before, of a run that is resumed.
    """
    spec, training = request.spec, request.training
    sections = spec.sections
    _check_memory(request, processes)
    model = build_model(spec, training.seed)
    if request.started.plan is not None:
        request.started.plan.apply(model)
        reset_adapters(model, training.seed)
    if request.started.record is not None:
        model.base = os.path.expanduser(request.started.record["name"])
        freeze_base(model, request.started.record)
    model.tokenizer = dict(request.started.tokenizers) or None
    preprocessors = fit_preprocessors(spec, model)
    options: dict[str, Any] = {
        "seed": training.seed,
        "bad_data": training.bad_data,
        "workers": training.workers,
        "pin": processes.device.type == "cuda",
        "progress": progress,
    }
    batches = open_batches(training.data, model, preprocessors, training.batch, **options)
    if processes.is_main:
        warn_unknown_tokens(batches.examples, model, preprocessors)
    validation = None
    if training.validation is not None:
        source = limit_examples(training.validation, training.evaluate.limit)
        validation = open_batches(
            source, model, preprocessors, training.batch, evaluation=True, **options
        )
        if processes.is_main:
            warn_unknown_tokens(validation.examples, model, preprocessors, data="validation")
    steps = count_steps(training, batches)
    set_trained(model, training, step)
    recompute_parts(model, training.checkpointing)
    processes.place(model)
    objective = fit_objective(request.spec, model, preprocessors)
    check_split(model, objective, processes.world, training.accumulate)
    module = LossModule(model, objective).to(processes.device)
    accelerate(module, registry=request.registry)
    if training.compile:
        module.compile(options=dict(COMPILER_OPTIONS))
    step_function = build_step(request, processes, module, steps)
    schedule = training.schedule.build(steps=steps) if training.schedule else None
    ema = training.average.ema if training.average else None
    sampler = training.evaluate.sampler or sections.sampler
    return Setup(
        request,
        processes,
        model,
        module,
        objective,
        batches,
        validation,
        step_function,
        schedule,
        MovingAverage(model, ema) if ema else None,
        steps,
        [blueprint.build() for blueprint in sections.metrics],
        sampler.build() if sampler else None,
        [blueprint.build() for blueprint in sections.filters],
    )


def build_step(
    request: Request, processes: Processes, module: LossModule, steps: int
) -> GlobalStep:
    """Return the update of the trained parameters of a model, with a new optimiser."""
    training = request.training
    return GlobalStep(
        processes.wrap(module),
        module,
        build_optimiser(training, module.model, steps),
        processes,
        clip=training.clip,
        accumulate=training.accumulate,
        capture=training.capture == "auto",
        registry=request.registry,
    )


def _check_memory(request: Request, processes: Processes) -> None:
    """Raise ZooError if the training does not fit in memory; the weights are built on the CPU."""
    spec, training = request.spec, request.training
    model = build_on_meta(spec).part
    check_memory(f"the model of spec '{spec.name}'", model_bytes(model), torch.device("cpu"))
    if not processes.sharded:
        if request.started.record is not None:
            freeze_base(model, request.started.record)
        set_trained(model, training, last_unfreezing(training))
        has_average = training.average is not None and training.average.ema is not None
        check_training_memory(
            spec.name,
            model,
            lambda: build_optimiser(training, model),
            processes.device,
            copies=int(has_average),
        )


def check_split(model: Model, objective: Objective, world: int, accumulate: int) -> None:
    """Raise ZooError if a batch is divided, but its loss is not the mean of those of its parts."""
    if world * accumulate == 1:
        return
    in_batch = compares_examples(model)
    if in_batch and calls_whole_batch(model):
        return
    if in_batch or not objective.mergeable:
        what = f"model '{model.name}'" if in_batch else f"objective '{objective.name}'"
        raise ZooError(
            f"the loss of {what} depends on all examples of a batch together, so a batch cannot be "
            f"divided over {world} process(es) and {accumulate} step(s) of accumulation; use one "
            "process and accumulate: 1"
        )


def count_steps(training: Training, batches: Batches) -> int:
    """Return the number of steps of a training, in which epochs can differ."""
    if training.steps is not None:
        return training.steps
    assert training.epochs is not None
    if _equal_epochs(training.batch):
        return training.epochs * batches.updates(0)
    return sum(batches.updates(epoch) for epoch in range(training.epochs))


def _equal_epochs(batching: Batching) -> bool:
    return batching.items is not None and batching.block is None
