"""One run: a variant with a seed."""

from __future__ import annotations

import shutil
import traceback
from dataclasses import dataclass
from pathlib import Path

import torch

from zoo.errors import ZooError
from zoo.training.callback import Callback
from zoo.training.interruption import Interrupted
from zoo.training.run_folder import CHECKPOINTS, MODEL_FILE
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.recipe_run import RESULT_FILE, read_result, write_result, write_text
from zoo_lab.reproduce.result import SeedResult
from zoo_lab.reproduce.seed_run import SeedOptions, SeedRun
from zoo_lab.reproduce.tokenizers import train_tokenizers

ERROR_FILE = "error.txt"


@dataclass(frozen=True)
class RunTask:
    """What a run needs.

    Attributes:
        study: name of the study.
        variant: name of the variant.
        recipe: the recipe of the variant.
        folder: folder of the study, with the tokenizers.
        device, command, max_seconds, examples, side_by_side: as in `SeedOptions`.
        keep: whether the model and its checkpoints are kept after the run.
    """

    study: str
    variant: str
    recipe: RecipeFile
    seed: int
    folder: Path
    device: str
    command: str
    max_seconds: float | None
    examples: int | None
    side_by_side: int
    keep: bool

    @property
    def name(self) -> str:
        return f"{self.study} {self.variant} seed {self.seed}"

    @property
    def run_folder(self) -> Path:
        return run_folder(self.folder, self.variant, self.recipe, self.seed)


def run_folder(folder: Path, variant: str, recipe: RecipeFile, seed: int) -> Path:
    """Return the folder of a run; runs with other settings have other folders."""
    return folder / f"{variant}-{recipe.fingerprint[:8]}" / f"seed-{seed}"


def run_variant(task: RunTask, callback: Callback | None = None) -> None:
    """Train and evaluate, and write the result, or the error, to the folder of the run.

    An interrupted training is continued.

    Raises:
        Interrupted: after SIGTERM or Ctrl-C, when a checkpoint has been saved.
        ZooError: if the variant cannot be composed, trained or evaluated.
    """
    folder = task.run_folder
    folder.mkdir(parents=True, exist_ok=True)
    options = SeedOptions(
        torch.device(task.device),
        task.command,
        task.max_seconds,
        task.examples,
        [callback] if callback else [],
        side_by_side=task.side_by_side,
    )
    try:
        overrides = train_tokenizers(task.recipe, task.folder)
        result = SeedRun(task.recipe, task.seed, folder, overrides, options).run()
    except Interrupted:
        raise
    except Exception as error:
        text = str(error) if isinstance(error, ZooError) else traceback.format_exc()
        write_text(folder / ERROR_FILE, text.strip())
        raise
    write_result(folder / RESULT_FILE, result)
    (folder / ERROR_FILE).unlink(missing_ok=True)
    if not task.keep:
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
        (folder / MODEL_FILE).unlink(missing_ok=True)


def read_run(task_folder: Path) -> tuple[SeedResult | None, str | None]:
    """Return the result of a run, or its error, or nothing."""
    result = read_result(task_folder / RESULT_FILE)
    error = task_folder / ERROR_FILE
    if result is not None or not error.is_file():
        return result, None
    return None, error.read_text(encoding="utf-8").strip()
