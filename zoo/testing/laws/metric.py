"""The laws of metrics."""

from __future__ import annotations

import random
from typing import Any

from zoo.interfaces import Metric
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law


def _close(actual: dict[str, float], expected: dict[str, float], what: str) -> None:
    assert actual.keys() == expected.keys(), f"{what}: {list(actual)}, not {list(expected)}"
    for name, value in expected.items():
        assert abs(actual[name] - value) < 1e-9, f"{what}: {name} is {actual[name]}, not {value}"


def merged_shards(config: Configuration) -> None:
    """Shards that gathered apart, then merged, equal the whole; so do small updates."""
    whole, small = config.build(), config.build()
    shards: list[Metric] = [config.build() for _ in range(3)]
    predictions, references = whole.example(12, random.Random(0))
    whole.update(predictions, references)
    for i in range(12):
        small.update(predictions[i : i + 1], references[i : i + 1])
        shards[i // 4].update(predictions[i : i + 1], references[i : i + 1])
    for shard in shards[1:]:
        shards[0].merge(shard)
    _close(small.compute(), whole.compute(), "gathered one by one")
    _close(shards[0].compute(), whole.compute(), "merged from three shards")


def matches_reference(config: Configuration) -> None:
    """The value equals that of the reference computation, on random examples."""
    values = set()
    for seed in range(10):
        metric = config.build()
        predictions, references = metric.example(12, random.Random(seed))
        metric.update(predictions, references)
        _close(metric.compute(), metric.reference(predictions, references), "the value")
        values.add(tuple(metric.compute().values()))
    assert len(values) > 1, "ten random examples all have one value; they show nothing"


def has_signature(config: Configuration) -> None:
    """The signature says what makes values comparable."""
    metric = config.build()
    metric.update(*metric.example(4, random.Random(0)))
    assert metric.signature().strip(), "the signature is empty"


def declared_input(config: Configuration) -> None:
    """The example has the form that `consumes` declares."""
    metric = config.build()
    predictions, references = metric.example(4, random.Random(0))
    for prediction, reference in zip(predictions, references, strict=True):
        if metric.consumes == "text":
            fits = (
                isinstance(prediction, str) and _is_list_of(reference, str) and len(reference) > 0
            )
        else:
            number = int if metric.consumes == "tokens" else float
            fits = _is_list_of(prediction, number) and _is_list_of(reference, int)
        found = f"{prediction!r} with {reference!r}"
        assert fits, f"consumes is '{metric.consumes}', but the example has {found}"


def _is_list_of(items: Any, wanted: type) -> bool:
    return isinstance(items, (list, tuple)) and all(isinstance(item, wanted) for item in items)


LAWS = (
    Law("merged-shards", merged_shards),
    Law("matches-reference", matches_reference),
    Law("has-signature", has_signature),
    Law("declared-input", declared_input),
)
