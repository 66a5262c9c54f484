"""One run of a recipe: training, evaluation of the best checkpoint, and its program."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from zoo.data.encoding import ProgressFunction
from zoo.hub.models import read_header
from zoo.interfaces import ProgramRun
from zoo.training.callback import Callback, RunInfo
from zoo.training.run import train
from zoo.training.run_log import read_log
from zoo_lab.bench.memory import CudaMemory, release_memory
from zoo_lab.environment import describe_hardware, find_commit, find_versions
from zoo_lab.reproduce.recipe_evaluation import RecipeEvaluation
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.result import SeedResult, shortened_to_examples, stopped_by_time

MAX_POINTS = 100
"""Largest number of points of a curve."""


@dataclass(frozen=True)
class SeedOptions:
    """How recipes are run.

    Attributes:
        device: the device.
        command: the command line, for the results.
        max_seconds: seconds of training of each run; None: as in the recipe.
        examples: evaluate on the first examples only, this many.
        callbacks: observers of the training.
        progress: opens a progress bar for evaluations and programs.
        side_by_side: number of runs that share the machine, for the results.
    """

    device: torch.device
    command: str = ""
    max_seconds: float | None = None
    examples: int | None = None
    callbacks: Sequence[Callback] = ()
    progress: Callable[[], AbstractContextManager[ProgressFunction | None]] = nullcontext
    side_by_side: int = 1


class _Info(Callback):
    """Keeps what is known when a run starts."""

    info: RunInfo | None = None

    def on_start(self, info: RunInfo) -> None:
        self.info = info


@dataclass
class SeedRun:
    """Runs one seed in a folder; an interrupted training is continued.

    Args:
        recipe: the recipe.
        seed: random seed.
        folder: folder of the run.
        overrides: values of the spec that set the trained tokenizers.
        options: how recipes are run.
    """

    recipe: RecipeFile
    seed: int
    folder: Path
    overrides: Sequence[str]
    options: SeedOptions
    values: dict[str, float] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    shortened: list[str] = field(default_factory=list)

    def run(self) -> SeedResult:
        """Train, evaluate and measure.

        Raises:
            Interrupted: after SIGTERM or Ctrl-C, when a checkpoint has been saved.
        """
        started = time.monotonic()
        trained: dict[str, Any] = {}
        model = None
        if self.recipe.spec is not None:
            model, trained = self._train()
        with self.options.progress() as progress:
            if model is not None:
                self._evaluate(model, progress)
            if self.recipe.recipe.program is not None:
                run = ProgramRun(self.folder, model, self.options.device, self.seed, progress)
                self.values |= self.recipe.recipe.program.build().run(run)
        if self.options.examples is not None:
            self.shortened.append(shortened_to_examples(self.options.examples))
        seconds = time.monotonic() - started
        before = max(0.0, trained.get("training_seconds", 0.0) - seconds)  # of interrupted runs
        return SeedResult(
            seed=self.seed,
            fingerprint=self.recipe.fingerprint,
            overrides=list(self.recipe.overrides),
            command=self.options.command,
            commit=find_commit(),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            hardware=describe_hardware(self.options.device),
            versions=find_versions(),
            seconds=before + seconds,
            values=self.values,
            signatures=self.signatures,
            shortened=self.shortened,
            side_by_side=self.options.side_by_side,
            **trained,
        )

    def _train(self) -> tuple[Path, dict[str, Any]]:
        """Return the file of the best model, and what is known about its training."""
        assert self.recipe.spec is not None
        kept, device = _Info(), self.options.device
        release_memory(device)
        memory = CudaMemory(device) if device.type == "cuda" else None
        if memory is not None:
            memory.start()
        result = train(
            self.recipe.spec,
            output=self.folder,
            overrides=self.overrides,
            resume=True,
            device=device,
            seed=self.seed,
            max_seconds=self.options.max_seconds,
            callbacks=[kept, *self.options.callbacks],
        )
        stored = read_header(result.path).provenance["train"]
        self.values |= {f"validation/{name}": value for name, value in result.values.items()}
        assert kept.info is not None
        if result.out_of_time:
            assert self.options.max_seconds is not None
            stopped = stopped_by_time(self.options.max_seconds)
            self.shortened.append(f"{stopped} at step {result.step:,} of {kept.info.steps:,}")
        return result.path, {
            "steps": result.step,
            "parameters": kept.info.parameters,
            "training_seconds": stored["seconds"],
            "tokens_per_second": read_speed(result.log),
            "peak_memory": memory.peak() if memory is not None else None,
            "curve": read_curve(result.log),
        }

    def _evaluate(self, model: Path, progress: ProgressFunction | None) -> None:
        """Add the values of all evaluations."""
        evaluation = RecipeEvaluation(
            model, self.options.device, examples=self.options.examples, progress=progress
        )
        evaluation.run(self.recipe.recipe)
        self.values |= evaluation.values
        self.signatures |= evaluation.signatures


def read_speed(log: Path) -> float | None:
    """Return the median of the tokens per second, without the first line if there are more."""
    rows = [row["tokens_per_second"] for row in read_log(log) if "loss" in row]
    return statistics.median(rows[1:] or rows) if rows else None


def read_curve(log: Path) -> list[dict[str, float]]:
    """Return loss and validation results by step, at most `MAX_POINTS` of each."""
    rows = read_log(log)
    losses = [{"step": row["step"], "loss": row["loss"]} for row in rows if "loss" in row]
    evaluations = [
        {key: row[key] for key in row if key == "step" or key.startswith("validation_")}
        for row in rows
        if "loss" not in row
    ]
    points: dict[int, dict[str, float]] = {}
    for row in [*_thin(losses), *_thin(evaluations)]:
        points.setdefault(int(row["step"]), {}).update(row)
    return [_rounded(points[step]) for step in sorted(points)]


def _thin(rows: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """Return rows at equal distances, the last one included."""
    stride = -(-len(rows) // MAX_POINTS) if rows else 1
    return list(rows[::-1][::stride][::-1])


def _rounded(row: dict[str, float]) -> dict[str, float]:
    return {key: value if key == "step" else float(f"{value:.5g}") for key, value in row.items()}
