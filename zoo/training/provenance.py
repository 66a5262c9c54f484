"""The provenance of the models that a run saves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from zoo.hub.base_model import repository
from zoo.training.setup import Setup
from zoo.training.state import RunState


def make_provenance(setup: Setup, state: RunState) -> Callable[[], Mapping[str, Any]]:
    """Return a function that returns the provenance of a model that is saved now."""
    section = setup.request.spec.resolve()["train"]
    started = time.monotonic() - state.seconds
    base = describe_base(setup.request.started.record)
    return lambda: {
        **base,
        "train": {
            "section": section,
            "step": state.step,
            "epoch": completed_epochs(setup, state),
            "results": state.values,
            "seconds": time.monotonic() - started,
            "hardware": setup.processes.describe(),
        },
    }


def describe_base(record: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the base of a training, and for the model card its repository on the Hub, or that of
    the model that it was imported from."""
    if record is None:
        return {}
    imported = record.get("imported") or {}
    name = repository(record["name"])
    if name is None and "commit" in imported:  # not of models that were imported from a folder
        name = repository(imported["imported"])
    return {"base": dict(record), **({"base_model": name} if name else {})}


def completed_epochs(setup: Setup, state: RunState) -> int:
    """Return the number of completed epochs."""
    return state.epoch + (state.index >= setup.batches.updates(state.epoch))
