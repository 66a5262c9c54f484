"""The section ``train`` of a spec: how a model is trained. `zoo.training` runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from zoo.errors import InvalidParameter, ZooError
from zoo.interfaces import Dataset, Optimiser, Sampler, Schedule
from zoo.registry.blueprint import Blueprint
from zoo.spec.fine_tuning import FineTuning, RateGroup, Start, Unfreezing

Positive = Annotated[int, Field(ge=1)]
MAX_STEPS = 10**12
ALTERNATIVES: dict[tuple[str | int, ...], tuple[str, ...]] = {
    ("train",): ("steps", "epochs"),
    ("train", "batch"): ("items", "tokens"),
    ("train", "average"): ("ema", "last", "best"),
}
"""By path: keys of which one is set. Setting one in an override or an extending spec replaces the
others."""


def _require_one(**values: object) -> None:
    """Raise ZooError unless exactly one of the values is set."""
    if sum(value is not None for value in values.values()) != 1:
        *names, last = (f"'{name}'" for name in values)
        raise ZooError(f"exactly one of {', '.join(names)} and {last} must be set")


class Batching:
    """Which examples one update of the weights uses, over all devices together.

    Args:
        items: number of examples.
        tokens: number of tokens, including padding, of the key with the most tokens.
        block: concatenate all texts and cut them into blocks of this many tokens, for language
            models; ``items`` counts blocks. A token that both starts and ends texts is between
            two texts once.
        pack: put several whole examples, one after the other, into rows of at most this many tokens
            in training, for models whose batch has ``segments``: no example attends to another, and
            positions start at 0 in each. ``items`` counts rows.
        buckets: number of batches whose examples are sorted by length together; 0: no sorting.
        shuffle: whether the order is random in each epoch.
        drop_long: skip examples with more tokens than this instead of raising an error.
    """

    def __init__(
        self,
        *,
        items: Positive | None = None,
        tokens: Positive | None = None,
        block: Positive | None = None,
        pack: Positive | None = None,
        buckets: Annotated[int, Field(ge=0)] = 100,
        shuffle: bool = True,
        drop_long: Positive | None = None,
    ) -> None:
        _require_one(items=items, tokens=tokens)
        if block is not None and items is None:
            raise ZooError("'block' needs 'items', the number of blocks")
        if block is not None and pack is not None:
            message = "'pack' keeps examples whole, 'block' divides them; set one of them"
            raise InvalidParameter("pack", message)
        self.items = items
        self.tokens = tokens
        self.block = block
        self.pack = pack
        self.buckets = buckets
        self.shuffle = shuffle
        self.drop_long = drop_long


class Averaging:
    """Averages the weights of several steps; the averages are evaluated and saved.

    Args:
        ema: decay of an exponential moving average, for example 0.999.
        last: average the weights of the last checkpoints, this many, at the end.
        best: average the weights of the best checkpoints, this many, at the end.
    """

    def __init__(
        self,
        *,
        ema: Annotated[float, Field(gt=0, lt=1)] | None = None,
        last: Annotated[int, Field(ge=2)] | None = None,
        best: Annotated[int, Field(ge=2)] | None = None,
    ) -> None:
        _require_one(ema=ema, last=last, best=best)
        self.ema = ema
        self.last = last
        self.best = best


class Evaluation:
    """Evaluation on the validation data during training.

    Args:
        every: number of steps between evaluations; default: after each epoch.
        monitor: the value that selects the best checkpoint: ``loss``, or a value of a metric of
            the spec, such as ``bleu``. With a list of values, an evaluation is the best so far if
            each value is at least as good as in all evaluations before.
        mode: whether a lower or a higher value is better; default: from the metric's name. Not
            for a list.
        patience: stop after this many evaluations without a better value; with a list, without
            a value that is at least as good as its best.
        sampler: the sampler to generate with; default: that of the spec.
        max_length: maximum number of generated tokens.
        limit: use only the first examples, this many.
    """

    def __init__(
        self,
        *,
        every: Positive | None = None,
        monitor: str | Sequence[str] = "loss",
        mode: Literal["min", "max"] | None = None,
        patience: Positive | None = None,
        sampler: Blueprint[Sampler] | None = None,
        max_length: Positive = 128,
        limit: Positive | None = None,
    ) -> None:
        if not monitor:
            raise InvalidParameter("monitor", "'monitor' is empty; name a value, such as 'loss'")
        if mode is not None and not isinstance(monitor, str):
            raise InvalidParameter("mode", "'mode' needs one value in 'monitor', not a list")
        self.every = every
        self.monitor = monitor
        self.mode = mode
        self.patience = patience
        self.sampler = sampler
        self.max_length = max_length
        self.limit = limit


class Checkpoints:
    """When checkpoints are saved, and which are kept.

    Args:
        every: number of steps between checkpoints; default: at each evaluation and at the end.
        last: number of newest checkpoints to keep.
        best: number of best checkpoints to keep.
    """

    def __init__(
        self, *, every: Positive | None = None, last: Positive = 1, best: Positive = 1
    ) -> None:
        self.every = every
        self.last = last
        self.best = best


class Log:
    """What is recorded during training.

    Args:
        every: number of steps between lines of the log.
        trackers: trackers of Accelerate, such as ``tensorboard``. Those that may upload data,
            such as ``wandb``, also need the option ``--allow-tracker`` of ``zoo train``.
    """

    def __init__(self, *, every: Positive = 10, trackers: Sequence[str] = ()) -> None:
        self.every = every
        self.trackers = tuple(trackers)


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The data of a training, and how it is read."""

    data: Blueprint[Dataset]
    validation: Blueprint[Dataset] | None = None
    test: Blueprint[Dataset] | None = None
    batch: Blueprint[Batching] | None = None
    bad_data: Literal["fail", "skip"] = "fail"
    workers: Annotated[int, Field(ge=0, le=64)] | None = None


@dataclass(frozen=True, kw_only=True)
class Optimisation:
    """How the weights are updated, and how often."""

    optimiser: Blueprint[Optimiser]
    schedule: Blueprint[Schedule] | None = None
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = None
    epochs: Positive | None = None
    clip: Annotated[float, Field(gt=0)] | None = None
    average: Blueprint[Averaging] | None = None

    def __post_init__(self) -> None:
        _require_one(steps=self.steps, epochs=self.epochs)


@dataclass(frozen=True, kw_only=True)
class Computation:
    """How an update is computed."""

    accumulate: Positive = 1
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    capture: Literal["auto", "off"] = "auto"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class Training:
    """How a model is trained by ``zoo train``.

    Args:
        data: the training data.
        validation: data to evaluate on during the training.
        test: data that ``zoo eval`` uses by default.
        batch: the examples of one update of the weights; default: 32 items.
        bad_data: what to do with examples that are not valid: ``fail``, or ``skip`` and count them.
        workers: number of processes that read the data; default: chosen for the device.
        optimiser: the optimiser, with its learning rate.
        schedule: how the learning rate changes; default: it is constant.
        steps: number of updates of the weights; or set ``epochs``.
        epochs: number of passes over the training data.
        clip: maximum norm of the gradient; larger gradients are scaled down.
        average: averages of the weights of several steps.
        accumulate: number of parts that the batch of each device is divided into, to save memory.
        precision: dtype of the forward and backward pass; the weights are float32.
        compile: whether to compile the model with torch.compile.
        capture: ``auto`` captures the step as a CUDA graph for each shape of a batch, on one CUDA
            device without accumulation, and pads lengths to a multiple of 8; Python code of the
            model and module hooks then run only when a shape is captured. ``off`` does not.
        seed: random seed of the weights, the order of the data and dropout.
        start: weights that the training starts from, of the whole model or of parts; default:
            initialised from the seed.
        freeze: patterns for the paths of parameters that are not trained, such as
            ``encoder.blocks.{0..5}``; modules without trained parameters are in evaluation mode.
        unfreeze: frozen parameters that are trained after some steps.
        groups: learning rate and weight decay of some parameters; the first that matches is used.
        depth_decay: factor of the learning rate from each block to the one before it.
        checkpointing: compute blocks again in the backward pass, to save memory: all blocks, or
            patterns for the paths of modules.
        evaluate: evaluation on the validation data.
        checkpoints: when checkpoints are saved, and which are kept.
        log: what is recorded.
    """

    def __init__(
        self,
        *,
        source: TrainingData,
        optimisation: Optimisation,
        computation: Computation,
        fine_tuning: FineTuning,
        evaluate: Blueprint[Evaluation] | None = None,
        checkpoints: Blueprint[Checkpoints] | None = None,
        log: Blueprint[Log] | None = None,
    ) -> None:
        self.data = source.data
        self.validation = source.validation
        self.test = source.test
        self.batch: Batching = source.batch.build() if source.batch else Batching(items=32)
        self.bad_data = source.bad_data
        self.workers = source.workers
        self.optimiser = optimisation.optimiser
        self.schedule = optimisation.schedule
        self.steps = optimisation.steps
        self.epochs = optimisation.epochs
        self.clip = optimisation.clip
        average = optimisation.average
        self.average: Averaging | None = average.build() if average else None
        self.accumulate = computation.accumulate
        self.precision = computation.precision
        self.compile = computation.compile
        self.capture = computation.capture
        self.seed = computation.seed
        start = fine_tuning.start
        self.start: Start | None = start.build() if start else None
        self.freeze = tuple(fine_tuning.freeze)
        self.unfreeze: list[Unfreezing] = [each.build() for each in fine_tuning.unfreeze]
        self.groups: list[RateGroup] = [each.build() for each in fine_tuning.groups]
        self.depth_decay = fine_tuning.depth_decay
        self.checkpointing = fine_tuning.checkpointing
        if self.compile and self.checkpointing:
            message = "'checkpointing' cannot be used with 'compile', which plans memory itself"
            raise InvalidParameter("checkpointing", message)
        self.evaluate: Evaluation = evaluate.build() if evaluate else Evaluation()
        if self.validation is None and (self.evaluate.patience or self.evaluate.monitor != "loss"):
            message = "'patience' and 'monitor' need data to evaluate on: set train.validation"
            raise InvalidParameter("evaluate", message)
        self.checkpoints: Checkpoints = checkpoints.build() if checkpoints else Checkpoints()
        self.log: Log = log.build() if log else Log()

    def datasets(self) -> dict[str, Blueprint[Dataset]]:
        """Return the datasets by their keys: ``data``, ``validation``, ``test``."""
        found: dict[str, Any] = {
            "data": self.data,
            "validation": self.validation,
            "test": self.test,
        }
        return {key: blueprint for key, blueprint in found.items() if blueprint is not None}
