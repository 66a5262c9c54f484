"""Evaluation of text files with metrics."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoo.errors import ZooError
from zoo.evaluation.settings import apply_overrides, build_parts
from zoo.files import split_lines
from zoo.interfaces import Metric
from zoo.interfaces.contracts import PREDICTIONS
from zoo.registry.component_registry import ComponentRegistry, default_registry

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Score:
    """Result of a metric: values by name, and the signature of its configuration."""

    metric: str
    values: dict[str, float]
    signature: str


def evaluate_files(
    hypotheses: PathLike,
    references: Sequence[PathLike],
    metrics: Iterable[str],
    *,
    overrides: Iterable[str] = (),
    registry: ComponentRegistry | None = None,
) -> list[Score]:
    """Score a file of predictions, one per line, against one or more files of references.

    Overrides set parameters of metrics: ``bleu.tokenize=intl``.
    """
    metrics_by_name = _build_metrics(
        list(dict.fromkeys(metrics)), overrides, registry or default_registry()
    )
    predictions = _read_lines(Path(hypotheses))
    reference_lines = [_read_lines(Path(file)) for file in references]
    for file, lines in zip(references, reference_lines, strict=True):
        if len(lines) != len(predictions):
            raise ZooError(
                f"{file} has {_format_count(lines)}, but {hypotheses} has "
                f"{_format_count(predictions)}; each reference must be on the "
                "same line as its prediction"
            )
    references_per_line = [list(group) for group in zip(*reference_lines, strict=True)]
    scores = []
    for name, metric in metrics_by_name.items():
        metric.update(predictions, references_per_line)
        scores.append(Score(name, metric.compute(), metric.signature()))
    _check_unique_values(scores)
    return scores


def _build_metrics(
    names: Sequence[str], overrides: Iterable[str], registry: ComponentRegistry
) -> dict[str, Metric]:
    """Return the metrics by name; parameters are validated as in a spec."""
    if not names:
        raise ZooError("metrics is empty; expected one or more names, for example bleu,chrf")
    for name in names:
        _require_text_metric(name, registry)
    parts = {name: {"type": name} for name in names}
    document = apply_overrides(parts, overrides, "metrics to compute")
    for name in names:
        part = document.data[name]
        if not isinstance(part, dict) or part["type"] != name:
            raise ZooError(f"--set {name}: expected {name}.PARAMETER=VALUE")
    return build_parts(Metric, document, names, registry)


def _require_text_metric(name: str, registry: ComponentRegistry) -> None:
    cls: Any = registry.get("metric", name).cls
    if cls.consumes == "text":
        return
    others: list[Any] = [entry.cls for entry in registry.components("metric")]
    available = ", ".join(sorted({other.name for other in others if other.consumes == "text"}))
    raise ZooError(
        f"metric '{name}' takes {PREDICTIONS.get(cls.consumes, cls.consumes)}, not text (metrics "
        f"for text files: {available})"
    )


def _read_lines(path: Path) -> list[str]:
    """Return the lines of a file."""
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ZooError(f"{path} cannot be read: {reason.lower()}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        raise ZooError(f"{path} is not UTF-8 text: byte 0x{byte:02x} in line {line}") from None
    if not text:
        raise ZooError(f"{path} is empty; expected one text per line")
    return split_lines(text)


def _format_count(lines: Sequence[str]) -> str:
    return f"{len(lines)} line" + ("s" if len(lines) != 1 else "")


def _check_unique_values(scores: Sequence[Score]) -> None:
    metric_of: dict[str, str] = {}
    for score in scores:
        for value in score.values:
            first = metric_of.setdefault(value, score.metric)
            if first != score.metric:
                raise ZooError(
                    f"metrics '{first}' and '{score.metric}' both return a value named '{value}'; "
                    "compute them separately"
                )
