"""The results of shipped weights, recomputed from their files."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import torch
from pydantic import BaseModel

from zoo.data.encoding import ProgressFunction
from zoo.hub.catalogue import CatalogueEntry
from zoo.hub.shipped import find_shipped
from zoo_lab.environment import describe_hardware, find_commit, find_versions
from zoo_lab.reproduce.data_check import check_data
from zoo_lab.reproduce.recipe_evaluation import RecipeEvaluation
from zoo_lab.reproduce.recipe_file import read_recipe
from zoo_lab.reproduce.result import Record, SeedResult

DTYPE = "float64"
"""Results are computed in double precision, so that another order of the same operations, on
another CPU or with another number of threads, does not change a hypothesis."""
FIRST = 5
"""Number of hypotheses of each evaluation that are stored as text."""
_MAX_CHARS = 200


class Hypotheses(BaseModel):
    """The predicted texts of an evaluation.

    Attributes:
        count: number of texts.
        sha256: hash of all texts, each followed by a line feed.
        first: hashes of the first texts, which a short evaluation can be compared with.
        texts: the first texts, shortened.
    """

    count: int
    sha256: str
    first: list[str]
    texts: list[str]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Hypotheses:
        """Return the hashes of texts."""
        return cls(
            count=len(texts),
            sha256=_hash("".join(f"{text}\n" for text in texts)),
            first=[_hash(text) for text in texts[:FIRST]],
            texts=[text[:_MAX_CHARS] for text in texts[:FIRST]],
        )


class ShippedResult(Record):
    """The results of a shipped model.

    Attributes:
        sha256, bytes: of the file.
        dtype: dtype that the results were computed in.
        command, commit, date, hardware, versions, seconds: how and where they were computed.
        values: all values, such as ``test/bleu``.
        signatures: the signatures of the metrics, by evaluation and metric.
        hypotheses: the predicted texts, by evaluation.
        training: the run that trained the model; its values are those before the conversion to
            the dtype of the file.
    """

    name: str
    recipe: str
    sha256: str
    bytes: int
    dtype: str
    command: str
    commit: str | None
    date: str
    hardware: dict[str, str | int]
    versions: dict[str, str]
    seconds: float
    values: dict[str, float]
    signatures: dict[str, str]
    hypotheses: dict[str, Hypotheses]
    training: SeedResult


def measure_shipped(
    entry: CatalogueEntry,
    training: SeedResult,
    *,
    device: str = "cpu",
    examples: int | None = None,
    progress: ProgressFunction | None = None,
) -> ShippedResult:
    """Compute the results of a shipped model in `DTYPE`.

    Args:
        entry: the model.
        training: the run that trained it.
        examples: evaluate on the first examples only, this many.

    Raises:
        DataError: if the data is missing or has another content.
        ZooError: if the weights are not installed, or have another content.
    """
    started = time.monotonic()
    path, shipped = find_shipped(entry).path, entry.shipped
    assert shipped is not None
    recipe = read_recipe(shipped.recipe, check=False).recipe
    check_data(recipe.data)
    target = torch.device(device)
    evaluation = RecipeEvaluation(path, target, DTYPE, examples, texts=True, progress=progress)
    evaluation.run(recipe)
    return ShippedResult(
        name=entry.name,
        recipe=shipped.recipe,
        sha256=shipped.sha256,
        bytes=shipped.bytes,
        dtype=DTYPE,
        command=f"python weights/ship.py --measure {entry.name}",
        commit=find_commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        hardware=describe_hardware(target),
        versions=find_versions(),
        seconds=time.monotonic() - started,
        values=evaluation.values,
        signatures=evaluation.signatures,
        hypotheses={name: Hypotheses.of(texts) for name, texts in evaluation.hypotheses.items()},
        training=training,
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
