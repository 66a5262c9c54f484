"""The report of a saved model: its parts, from the header."""

from __future__ import annotations

from zoo.artifact.header import Header
from zoo.artifact.versions import available_spec
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import build_on_meta
from zoo.spec.report import Report, TrainedReport, build_report
from zoo.spec.spec import load_spec


def report_model(header: Header, registry: ComponentRegistry | None = None) -> Report:
    """Return the report of a saved model; its weights are not read.

    If parameters are frozen, such as those of a model with adapters, it has their number.

    Raises:
        ArtifactError: if a component of the model is not installed.
    """
    spec = load_spec(available_spec(header, registry or default_registry()), registry=registry)
    tree = build_on_meta(spec)
    report = build_report(spec, tree)
    weights = [(weight.numel(), weight.requires_grad) for weight in tree.part.parameters()]
    trained = sum(count for count, is_trained in weights if is_trained)
    frozen = sum(count for count, _ in weights) - trained
    report.trained = TrainedReport(trained, frozen) if frozen else None
    return report
