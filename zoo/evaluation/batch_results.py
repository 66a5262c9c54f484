"""Results of one batch, and of the batches of one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from zoo.data.entities import find_entities
from zoo.errors import ZooError
from zoo.evaluation.generating import (
    FROM_OUTPUTS,
    Generation,
    Pairs,
    TextDecoder,
    class_ids,
    label_sets,
    target_tokens,
)
from zoo.interfaces import Metric, Model, Objective, Outputs

Tables = dict[str, dict[str, dict[str, float]]]
"""Values by title of a table, row and column."""

CLASSES = "classes"
CONFUSION = "confusion (rows: target, columns: predicted)"
MAX_CLASSES = 1000
MAX_COLUMNS = 20
"""Confusion matrices of more classes are not returned."""


class ClassReport:
    """Counts predicted and target classes.

    Precision is the share of the predictions of a class that are correct, recall the share of its
    targets that are predicted, F1 their harmonic mean; 0 if there are none to divide by.
    """

    def __init__(self) -> None:
        self.correct: Counter[int] = Counter()
        self.predicted: Counter[int] = Counter()
        self.targets: Counter[int] = Counter()
        self.pairs: Counter[tuple[int, int]] = Counter()
        self.single = True
        """Whether all items have one class and one prediction, so that they can be confused."""

    def update(
        self, predictions: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
    ) -> None:
        """Add the predicted and the target class IDs of items."""
        for predicted, target in zip(predictions, references, strict=True):
            self.correct.update(set(predicted) & set(target))
            self.predicted.update(set(predicted))
            self.targets.update(set(target))
            if len(predicted) == len(target) == 1:
                self.pairs[target[0], predicted[0]] += 1
            else:
                self.single = False

    def merge(self, other: ClassReport) -> None:
        self.correct.update(other.correct)
        self.predicted.update(other.predicted)
        self.targets.update(other.targets)
        self.pairs.update(other.pairs)
        self.single = self.single and other.single

    def tables(self, name: Callable[[int], str]) -> Tables:
        """Return the scores of the classes that occur, and the confusion matrix of few classes.

        Args:
            name: returns the name of a class ID.
        """
        ids = sorted(self.predicted.keys() | self.targets.keys())
        if not ids or len(ids) > MAX_CLASSES:
            return {}
        names = {number: name(number) for number in ids}
        if len(set(names.values())) < len(ids):
            names = {number: str(number) for number in ids}
        tables = {CLASSES: {names[number]: self._scores(number) for number in ids}}
        if self.single and len(ids) <= MAX_COLUMNS:
            tables[CONFUSION] = {
                names[row]: {names[column]: self.pairs[row, column] for column in ids}
                for row in ids
            }
        return tables

    def _scores(self, number: int) -> dict[str, float]:
        correct, predicted, targets = (
            counts[number] for counts in (self.correct, self.predicted, self.targets)
        )
        return {
            "precision": correct / predicted if predicted else 0.0,
            "recall": correct / targets if targets else 0.0,
            "f1": 2 * correct / (predicted + targets),
            "targets": targets,
        }


class EvaluationUpdate(Protocol):
    """A global batch: the micro-batches of one process, and the indices of their examples."""

    @property
    def index(self) -> int: ...
    @property
    def batches(self) -> Sequence[Mapping[str, Tensor] | None]: ...
    @property
    def examples(self) -> Sequence[int]: ...


class EvaluationBatches(Protocol):
    """The batches of a dataset, in which each example occurs once, such as
    `zoo.data.batches.Batches`."""

    def updates(self, epoch: int) -> int: ...
    def epoch(self, epoch: int, *, rank: int = 0, world: int = 1) -> Iterator[EvaluationUpdate]: ...
    def references(self, index: int) -> list[Any]: ...


@dataclass
class Share:
    """The results of one process."""

    metrics: list[Metric]
    loss: float = 0.0
    weight: float = 0.0
    examples: int = 0
    texts: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    generated: bool = False
    """Whether predicted tokens were generated, not the most probable classes."""
    report: ClassReport | None = None

    def merge(self, other: Share) -> None:
        for metric, more in zip(self.metrics, other.metrics, strict=True):
            metric.merge(more)
        self.loss += other.loss
        self.weight += other.weight
        self.examples += other.examples
        self.texts |= other.texts
        self.generated = self.generated or other.generated
        if self.report is not None and other.report is not None:
            self.report.merge(other.report)


class BatchResults:
    """One batch; outputs and generated tokens are computed once, when they are needed."""

    def __init__(
        self,
        model: Model,
        batch: Mapping[str, Tensor],
        objective: Objective | None,
        generation: Generation | None,
        decoder: TextDecoder,
    ) -> None:
        self.model = model
        self.batch = batch
        self.objective = objective
        self.decoder = decoder
        self.generation = generation if model.generation_input in batch else None
        self._outputs: Outputs | None = None
        self._tokens: list[list[int]] | None = None

    def add_to(
        self, share: Share, examples: Sequence[int], batches: EvaluationBatches, texts: bool
    ) -> None:
        """Add the loss and the predictions of the batch."""
        share.examples += len(examples)
        if self.objective is not None:
            weight = self._weight(self.objective, len(examples))
            share.loss += float(self.objective(self.outputs)) * weight
            share.weight += weight
        kinds = {metric.consumes for metric in share.metrics}
        pairs = {kind: self._pairs(kind) for kind in sorted(kinds - {"text"})}
        if texts or "text" in kinds:
            references = [_reference_texts(batches.references(index)) for index in examples]
            pairs["text"] = self._texts(generate="text" in kinds), references
            share.texts |= dict(zip(examples, zip(*pairs["text"], strict=True), strict=True))
        share.generated = share.generated or self._tokens is not None
        for metric in share.metrics:
            metric.update(*pairs[metric.consumes])
        if share.report is not None:
            share.report.update(*label_sets(self.outputs))

    def _texts(self, *, generate: bool) -> list[str]:
        if generate or self.model.generation_input is not None:
            return self.decoder.texts(self.tokens)
        return self.decoder.class_names(class_ids(self.outputs)[0])

    def _weight(self, objective: Objective, items: int) -> float:
        """Return the number of terms of the loss; of items, if the loss cannot be split."""
        return float(objective.weight(self.outputs) if objective.mergeable else items)

    @property
    def outputs(self) -> Outputs:
        if self._outputs is None:
            self._outputs = self.model(self.batch)
        return self._outputs

    @property
    def tokens(self) -> list[list[int]]:
        """The generated tokens of each item."""
        if self._tokens is None:
            self._tokens = self._require_generation().tokens(self.batch)
        return self._tokens

    def _pairs(self, kind: str) -> Pairs:
        if kind == "tokens" and self.generation is not None:
            return self.tokens, target_tokens(self.outputs, self.generation.eos_ids)
        if kind == "entities":
            predicted, targets = (
                [find_entities(tags) for tags in self.decoder.name_rows(rows)]
                for rows in class_ids(self.outputs)
            )
            return predicted, targets
        return FROM_OUTPUTS[kind](self.outputs)

    def _require_generation(self) -> Generation:
        if self.generation is not None:
            return self.generation
        label, key = f"model '{self.model.name}'", self.model.generation_input
        if key is None:
            raise ZooError(f"{label} does not generate text")
        if key not in self.batch:
            found = ", ".join(f"'{name}'" for name in self.batch)
            raise ZooError(
                f"{label} generates text from '{key}', but the batches have {found}; use a dataset "
                f"with the field '{key}', or metrics that do not take text"
            )
        raise ZooError(f"{label} has no sampler to generate text with; pass one, such as 'greedy'")


def _reference_texts(values: Sequence[Any]) -> list[str]:
    """Return the texts and names of classes among the target values of an example."""
    return [str(value) for value in values if isinstance(value, (str, int))]
