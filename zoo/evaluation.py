"""Text files scored by metrics: line by line, a text and its references."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoo.errors import RegistryError, SpecError, ZooError, suggest
from zoo.interfaces import Metric
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.document import document_from_data
from zoo.spec.merging import merge, parse_override
from zoo.spec.reader import SpecReader

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Score:
    """What one metric says: its value or values by name, and what makes them comparable."""

    metric: str
    values: dict[str, float]
    signature: str


def evaluate(
    hypotheses: PathLike,
    references: Sequence[PathLike],
    metrics: Iterable[str],
    *,
    overrides: Iterable[str] = (),
    registry: ComponentRegistry | None = None,
) -> list[Score]:
    """The scores of a file of texts, one a line, against one or more files of references.

    Overrides set parameters of metrics: ``bleu.tokenize=intl``.
    """
    chosen = _build_metrics(list(dict.fromkeys(metrics)), overrides, registry or default_registry())
    predictions = _read_lines(Path(hypotheses))
    streams = [_read_lines(Path(file)) for file in references]
    for file, stream in zip(references, streams, strict=True):
        if len(stream) != len(predictions):
            raise ZooError(
                f"{file} has {_format_count(stream)}, but {hypotheses} has {_format_count(predictions)}; "
                "each text needs its reference in the same line"
            )
    texts = [list(of_one) for of_one in zip(*streams, strict=True)]
    scores = []
    for name, metric in chosen.items():
        metric.update(predictions, texts)
        scores.append(Score(name, metric.compute(), metric.signature()))
    _check_unique_values(scores)
    return scores


def _build_metrics(
    names: Sequence[str], overrides: Iterable[str], registry: ComponentRegistry
) -> dict[str, Metric]:
    """The metrics by name, built as a spec would have them built."""
    if not names:
        raise ZooError("no metric is named; name one or more, for example bleu,chrf")
    for name in names:
        _require_text_metric(name, registry)
    document = document_from_data({name: {"type": name} for name in names})
    for text in overrides:
        document = merge(document, parse_override(text, document, "bleu.tokenize=intl"))
        for key, part in document.data.items():
            if key not in names:
                raise RegistryError(
                    f"--set {text}: '{key}' is none of the chosen metrics{suggest(key, names)}"
                )
            if not isinstance(part, dict) or part["type"] != key:
                raise ZooError(f"--set {text}: should read {key}.PARAMETER=VALUE")
    reader = SpecReader(document, registry)
    parts: dict[str, Any] = {
        name: reader.part(Metric, document.data[name], (name,)) for name in names
    }
    if reader.problems:
        raise SpecError(reader.problems)
    return {name: part.build() for name, part in parts.items()}


def _require_text_metric(name: str, registry: ComponentRegistry) -> None:
    cls: Any = registry.get("metric", name).cls
    if cls.consumes == "text":
        return
    others: list[Any] = [entry.cls for entry in registry.components("metric")]
    able = ", ".join(sorted({other.name for other in others if other.consumes == "text"}))
    reads = {"tokens": "token ids", "logprobs": "log-probabilities"}[cls.consumes]
    raise ZooError(
        f"metric '{name}' reads {reads}, so it cannot score text files (those that can: {able})"
    )


def _read_lines(path: Path) -> list[str]:
    """The texts of a file. Only a line feed ends a line, lest Unicode's other breaks shift them."""
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
        raise ZooError(f"{path} is empty; it should hold one text a line")
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _format_count(lines: Sequence[str]) -> str:
    return f"{len(lines)} line" + ("s" if len(lines) != 1 else "")


def _check_unique_values(scores: Sequence[Score]) -> None:
    giver: dict[str, str] = {}
    for score in scores:
        for value in score.values:
            first = giver.setdefault(value, score.metric)
            if first != score.metric:
                raise ZooError(
                    f"metrics '{first}' and '{score.metric}' both give a value named '{value}'; "
                    "take one of them at a time"
                )
