"""The objective and the metrics of a spec, built."""

from __future__ import annotations

from zoo.errors import ZooError
from zoo.interfaces import Metric, Model, Objective
from zoo.spec.providers import require_installed
from zoo.spec.spec import Source, Spec, load_spec


def objective(spec: Source | Spec | Model) -> Objective:
    """Build the objective of a spec.

    Args:
        spec: name of a spec of a plugin, path, mapping, `Spec`, or a model composed from a spec.

    Raises:
        ZooError: if the spec has no section ``objective``, or its plugin is not installed.
    """
    read = _read(spec, "objective")
    if read.sections.objective is None:
        raise ZooError(f"spec '{read.name}' has no objective; add one: 'objective: cross-entropy'")
    return read.sections.objective.build()


def metrics(spec: Source | Spec | Model) -> list[Metric]:
    """Build the metrics of a spec, in the order of the spec.

    Args:
        spec: name of a spec of a plugin, path, mapping, `Spec`, or a model composed from a spec.

    Raises:
        ZooError: if the spec has no section ``metrics``, or a plugin of them is not installed.
    """
    read = _read(spec, "metrics")
    if not read.sections.metrics:
        raise ZooError(f"spec '{read.name}' has no metrics; add some: 'metrics: [accuracy]'")
    return [blueprint.build() for blueprint in read.sections.metrics]


def _read(spec: Source | Spec | Model, section: str) -> Spec:
    if isinstance(spec, Spec):
        return spec
    if not isinstance(spec, Model):
        return load_spec(spec)
    if spec.spec is None:
        raise ZooError(
            f"this {type(spec).__name__} was not composed from a spec, so it has no {section}; "
            "pass the spec instead of the model"
        )
    require_installed(spec.spec.get(section), spec.providers)
    keys = ("zoo", "name", "model", section)
    return load_spec({key: spec.spec[key] for key in keys if key in spec.spec})
