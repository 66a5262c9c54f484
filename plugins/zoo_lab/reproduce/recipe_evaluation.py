"""The evaluations of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from zoo.data.encoding import ProgressFunction
from zoo.evaluation.evaluating import evaluate
from zoo_lab.reproduce.recipe_schema import EvaluationRecipe, Recipe


@dataclass
class RecipeEvaluation:
    """Evaluates a saved model as a recipe describes, and collects the results.

    Args:
        model: file of the model.
        device: the device.
        dtype: dtype of the weights; default: as stored.
        examples: evaluate on the first examples only, this many.
        texts: whether to collect the predicted texts.
        progress: called after each batch.

    Attributes:
        values: such as ``test/bleu``; means over the labels of ``each``, if it is set.
        signatures: the signatures of the metrics, by evaluation and metric.
        hypotheses: the predicted texts, by evaluation.
    """

    model: Path
    device: torch.device
    dtype: str | None = None
    examples: int | None = None
    texts: bool = False
    progress: ProgressFunction | None = None
    values: dict[str, float] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    hypotheses: dict[str, list[str]] = field(default_factory=dict)

    def run(self, recipe: Recipe) -> None:
        """Run all evaluations of a recipe."""
        for name, evaluation in recipe.evaluate.items():
            data = {f"{name}-{label}": params for label, params in evaluation.each.items()}
            groups = [
                self._evaluate(label, evaluation, {**evaluation.data, **params})
                for label, params in (data or {name: {}}).items()
            ]
            for key in groups[0] if data else ():
                self.values[f"{name}/{key}"] = sum(group[key] for group in groups) / len(groups)

    def _evaluate(
        self, name: str, evaluation: EvaluationRecipe, data: Mapping[str, Any]
    ) -> dict[str, float]:
        metrics = [blueprint.build() for blueprint in evaluation.metrics]
        result = evaluate(
            self.model,
            data or None,
            part=evaluation.part,
            metrics=metrics or None,
            sampler=evaluation.sampler.build() if evaluation.sampler else None,
            max_length=evaluation.max_length,
            batch=evaluation.batch,
            block=evaluation.block,
            max_examples=self.examples,
            texts=self.texts,
            device=self.device,
            dtype=self.dtype,
            progress=self.progress,
        )
        self.values |= {f"{name}/{key}": value for key, value in result.values.items()}
        self.signatures |= {f"{name}/{key}": text for key, text in result.signatures.items()}
        self.hypotheses[name] = result.hypotheses
        return result.values
