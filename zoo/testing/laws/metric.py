"""Laws of metrics."""

from __future__ import annotations

import pickle
import random
from typing import Any

from zoo.interfaces import Metric
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law

ITEMS: dict[str, tuple[type, type]] = {
    "tokens": (int, int),
    "entities": (tuple, tuple),
    "labels": (int, int),
    "values": (float, float),
    "logprobs": (float, int),
    "vectors": (float, float),
}
"""By `Metric.consumes`: the types of the items of a prediction and of a reference."""


def _close(actual: dict[str, float], expected: dict[str, float], what: str) -> None:
    assert actual.keys() == expected.keys(), f"{what}: {list(actual)}, not {list(expected)}"
    for name, value in expected.items():
        assert abs(actual[name] - value) < 1e-9, f"{what}: {name} is {actual[name]}, not {value}"


def merged_shards(config: Configuration) -> None:
    """Merged shards, and small updates, give the value of a single update."""
    single, stepwise = config.build(), config.build()
    shards: list[Metric] = [config.build() for _ in range(3)]
    predictions, references = single.example(12, random.Random(0))
    single.update(predictions, references)
    for i in range(12):
        stepwise.update(predictions[i : i + 1], references[i : i + 1])
        shards[i // 4].update(predictions[i : i + 1], references[i : i + 1])
    for shard in shards[1:]:
        shards[0].merge(shard)
    _close(stepwise.compute(), single.compute(), "updated one at a time")
    _close(shards[0].compute(), single.compute(), "merged from three shards")


def matches_reference(config: Configuration) -> None:
    """The value equals that of the reference implementation on random examples."""
    values = set()
    for seed in range(10):
        metric = config.build()
        predictions, references = metric.example(12, random.Random(seed))
        metric.update(predictions, references)
        _close(metric.compute(), metric.reference(predictions, references), "the value")
        values.add(tuple(metric.compute().values()))
    assert len(values) > 1, (
        "ten random examples have the same value, so the comparison proves nothing"
    )


def has_signature(config: Configuration) -> None:
    """The signature is not empty."""
    metric = config.build()
    metric.update(*metric.example(4, random.Random(0)))
    assert metric.signature().strip(), "the signature is empty"


def pickled(config: Configuration) -> None:
    """An instance that was pickled, as it is between processes, has the same value."""
    metric = config.build()
    metric.update(*metric.example(4, random.Random(0)))
    try:
        restored = pickle.loads(pickle.dumps(metric))
    except Exception as error:
        raise AssertionError(f"it cannot be pickled: {error}") from None
    _close(restored.compute(), metric.compute(), "after pickling")


def declared_input(config: Configuration) -> None:
    """The example has the type that `consumes` declares."""
    metric = config.build()
    predictions, references = metric.example(4, random.Random(0))
    for prediction, reference in zip(predictions, references, strict=True):
        if metric.consumes == "text":
            valid = (
                isinstance(prediction, str) and _is_list_of(reference, str) and len(reference) > 0
            )
        else:
            predicted, expected = ITEMS[metric.consumes]
            valid = _is_list_of(prediction, predicted) and _is_list_of(reference, expected)
        found = f"{prediction!r} with {reference!r}"
        assert valid, f"consumes is '{metric.consumes}', but the example has {found}"


def declared_direction(config: Configuration) -> None:
    """Correct predictions have better values than random ones, as `lower_is_better` declares."""
    given, correct = config.build(), config.build()
    predictions, references = given.example(12, random.Random(0))
    given.update(predictions, references)
    correct.update([_correct(given, reference) for reference in references], references)
    better = correct.compute()
    for name, value in given.compute().items():
        improved = better[name] < value if given.lower_is_better else better[name] > value
        assert improved or better[name] == value, (
            f"lower_is_better is {given.lower_is_better}, but {name} is {better[name]} for correct "
            f"predictions and {value} for random ones"
        )


def _correct(metric: Metric, reference: Any) -> Any:
    """Return the prediction that equals its reference."""
    if metric.consumes == "logprobs":
        return [0.0 for _ in reference]
    return reference[0] if metric.consumes == "text" else list(reference)


def _is_list_of(items: Any, item_type: type) -> bool:
    return isinstance(items, (list, tuple)) and all(isinstance(item, item_type) for item in items)


LAWS = (
    Law("merged-shards", merged_shards),
    Law("matches-reference", matches_reference),
    Law("has-signature", has_signature),
    Law("pickled", pickled),
    Law("declared-input", declared_input),
    Law("declared-direction", declared_direction),
)
