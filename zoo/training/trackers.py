"""The trackers of a run: which are installed, and which the caller has allowed."""

from __future__ import annotations

from collections.abc import Collection

from zoo.errors import MissingExtra, Problem, SpecError, suggest
from zoo.spec.spec import Spec
from zoo.spec.training import Training

_LOCAL = ("tensorboard",)
"""Trackers that write to the folder of the run only."""
_PACKAGES = {"comet_ml": "comet-ml"}
"""Names of trackers that are not the name of their package."""


def check_trackers(spec: Spec, training: Training, allowed: Collection[str]) -> None:
    """Raise SpecError for trackers that cannot be used.

    A spec may come from a third party, and most trackers send the spec and the results to a server,
    so they are used only if the caller names them too.
    """
    section = spec.sections.train
    log = section.params.get("log") if section else None
    problems = []
    for i, name in enumerate(training.log.trackers):
        message = _why_not(name, allowed)
        if message is not None:
            place = log.places.get(f"trackers[{i}]") if log else None
            problems.append(Problem(message, f"train.log.trackers[{i}]", place))
    if problems:
        raise SpecError(problems)


def _why_not(name: str, allowed: Collection[str]) -> str | None:
    """Return why a tracker cannot be used, or None."""
    try:
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers
        from accelerate.utils import LoggerType
    except ImportError:
        raise MissingExtra("training", library="accelerate", extra="train") from None
    if name not in LOGGER_TYPE_TO_CLASS:
        return f"'{name}' is not a tracker of Accelerate{suggest(name, LOGGER_TYPE_TO_CLASS)}"
    if name in LoggerType.list() and name not in map(str, get_available_trackers()):
        package = _PACKAGES.get(name, name)
        return f"tracker '{name}' is not installed; install it with: pip install {package}"
    if name not in (*_LOCAL, *allowed):
        return (
            f"tracker '{name}' can send the spec and the results to a server; allow it with "
            f"--allow-tracker {name} (in Python: allow_trackers=['{name}']), or remove it"
        )
    return None
