"""Jobs on comparisons: a section ``train`` to start with, and what is compared without training."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

import zoo
from zoo.errors import ZooError, ZooWarning
from zoo.evaluation.datasets import find_dataset
from zoo.interfaces import Dataset, Entry, Preprocessor
from zoo.registry.component_registry import default_registry
from zoo.spec.meta import skip_dynamo_import
from zoo_ui.jobs.specs import check_data, replace_value

_MAX_PARAMETERS = 30_000_000
_BATCH, _LENGTH, _RUNS = 8, 16, 5
_TRAINING = {"optimiser": {"type": "adamw", "lr": 0.001}, "batch": {"items": 32}, "steps": 1000}


def starters(session: dict[str, Any], *, data: Any) -> list[dict[str, Any]]:
    """Return what a spec needs to be trained, for each dataset with which it passes the check:
    the sections ``train`` and ``preprocessing``.

    The parameters are those of the example files of the dataset, whose names are to be replaced.
    """
    return find_starters(data, default_registry().components(Dataset.kind))


def find_starters(data: Any, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the starters with some datasets.

    Nobody has chosen one of them, so one whose library is missing or does not work is left out; the
    laws of datasets report why.
    """
    found = []
    for entry in entries:
        assert issubclass(entry.cls, Dataset)
        try:
            settings = {"type": entry.name, **_example_settings(entry.cls)}
        except Exception:
            continue
        if "data" in settings:  # a part of another dataset
            continue
        sections = next(_passing(data, settings), None)
        if sections is not None:
            found.append({"dataset": entry.name, "summary": entry.summary, "sections": sections})
    return found


def _example_settings(cls: type[Dataset]) -> dict[str, Any]:
    """Return parameters of a dataset; files have their names without a folder."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings: dict[str, Any] = _without_folder(cls.write_example(Path(folder)), folder)
    return settings


def _without_folder(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.removeprefix(folder).lstrip("/") if value.startswith(folder) else value
    if isinstance(value, Mapping):
        return {key: _without_folder(each, folder) for key, each in value.items()}
    return [_without_folder(each, folder) for each in value] if isinstance(value, list) else value


def _passing(data: Mapping[str, Any], settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the sections with which a spec passes: without preprocessors, or with one for each
    field of the dataset that has none."""
    train = {"data": settings, "validation": settings, **_TRAINING}
    known = data.get("preprocessing") or {}
    fields = find_dataset({}, None, settings, default_registry()).build().fields()
    contents = {key: each.content for key, each in fields.items() if each.content != "array"}
    missing = {key: content for key, content in contents.items() if key not in known}
    for parts in [{}, *_preprocessors(missing)]:
        sections = {"train": train} | ({"preprocessing": {**known, **parts}} if parts else {})
        if check_data({**data, **sections})["ok"]:
            yield sections


def _preprocessors(contents: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield preprocessors for the fields, with a tokenizer of their own if they take one."""
    entries = default_registry().components(Preprocessor.kind)
    names = {
        content: sorted(
            (e.name for e in entries if getattr(e.cls, "content", "") == content),
            key=lambda name: name != content,  # "text" for texts first
        )
        for content in contents.values()
    }
    for number in range(max((len(each) for each in names.values()), default=0)):
        parts = {
            key: {"type": names[content][min(number, len(names[content]) - 1)]}
            for key, content in contents.items()
            if names[content]
        }
        yield parts
        yield {
            key: part | ({"tokenizer": "tokenizer.json"} if contents[key] == "text" else {})
            for key, part in parts.items()
        }


def measure(
    session: dict[str, Any], *, data: Any, path: Sequence[str | int], values: Sequence[Any]
) -> list[dict[str, Any]]:
    """Return sizes and times of a spec with each of several values at a path, untrained."""
    return [_measure(replace_value(data, path, value)) for value in values]


def _measure(data: Any) -> dict[str, Any]:
    """Return parameters, bytes, and milliseconds of a forward pass and of one with its gradients,
    on a batch of the model's own example; None if the model is large or has no example."""
    report = check_data(data)
    if not report["ok"]:
        raise ZooError(report["errors"][0]["message"])
    sizes = {key: report[key] for key in ("parameters", "bytes")}
    if report["parameters"] > _MAX_PARAMETERS:
        return sizes | {"forward": None, "training": None}
    with warnings.catch_warnings(), skip_dynamo_import():
        warnings.simplefilter("ignore", ZooWarning)
        model = zoo.compose(data, seed=0)
        objective = zoo.objective(data)
        batch = model.example(_BATCH, _LENGTH, torch.Generator().manual_seed(0))

        def train() -> None:
            model.zero_grad()
            objective(model(batch)).backward()

        training = _milliseconds(train)
        model.eval()
        with torch.no_grad():
            return sizes | {"forward": _milliseconds(lambda: model(batch)), "training": training}


def _milliseconds(run: Any) -> float:
    """Return the median time of several runs, after one that is not counted."""
    times = []
    for _ in range(_RUNS + 1):
        started = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - started))
    return median(times[1:])
