"""Checks that objective, sampler, filters and metrics of a spec fit its model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from zoo.errors import Problem
from zoo.interfaces import Alignment, FrameSampler, Metric, Model, Objective
from zoo.interfaces.contracts import DECODING, PREDICTIONS, OutputRequirement, OutputSchema
from zoo.interfaces.signature import Parameter, parameters
from zoo.registry.blueprint import Blueprint, BuildNode
from zoo.registry.component_registry import ComponentRegistry
from zoo.registry.plugin_call import PluginCall
from zoo.spec.spec import Spec


def contract_problems(
    spec: Spec, root: BuildNode, registry: ComponentRegistry
) -> Iterator[Problem]:
    """Yield the conflicts of the sections with the model; ``root`` has all built parts.

    A model without an `OutputSchema` is not checked.
    """
    tree, sections = root.children[0], spec.sections
    model: Model = tree.part
    with sections.model.report_errors("output_schema"):
        schema = model.output_schema()
    if schema is None:
        return
    label = f"model '{sections.model.label}'"
    if sections.objective is not None:
        objective: Objective = _built(sections.objective, root)
        with sections.objective.report_errors("required_outputs"):
            messages = list(objective.required_outputs().problems(schema, label))
        for message in messages:
            at = _format_stochastic(tree) if message.startswith("does not use") else ""
            fitting = _fitting_objectives(schema, registry)
            yield _problem(sections.objective, f"{message}{at}", fitting)
    for sampler in filter(None, (sections.sampler, _evaluation(spec).get("sampler"))):
        conflict = _sampler_problem(sampler.cls.decoding, schema, label)
        if conflict:
            others: list[Any] = [entry.cls for entry in registry.components("sampler")]
            fitting = (other.name for other in others if other.decoding in schema.decoding)
            yield _problem(sampler, conflict, fitting)
        else:
            needed = _built(sampler, root).min_vocab
            if needed and needed > (vocab := model.vocab_size("target")):
                message = f"needs a vocabulary of at least {needed:,} tokens, but {label} has"
                yield _problem(sampler, f"{message} {vocab:,}")
    yield from _filter_problems(spec, root, schema)
    for metric in sections.metrics:
        mismatch = metric_conflict(metric.cls, schema, label)
        if mismatch:
            yield _problem(metric, mismatch, fitting_metrics(schema, registry))
        elif metric.cls.consumes == "text" and _lacks_sampler(spec) and model.generation_input:
            yield _problem(
                metric,
                "takes generated text in the evaluation of the training, which needs a sampler; "
                "set, for example, 'sampler: greedy'",
            )


def _evaluation(spec: Spec) -> Mapping[str, Any]:
    """Return the parameters of ``train.evaluate``."""
    train = spec.sections.train
    evaluate = None if train is None else train.params.get("evaluate")
    return evaluate.params if isinstance(evaluate, Blueprint) else {}


def _lacks_sampler(spec: Spec) -> bool:
    """Return whether the training of a spec evaluates without a sampler."""
    train = spec.sections.train
    if train is None or train.params.get("validation") is None:
        return False
    return spec.sections.sampler is None and _evaluation(spec).get("sampler") is None


def _filter_problems(spec: Spec, root: BuildNode, schema: OutputSchema) -> Iterator[Problem]:
    """Yield the filters of a sampler that uses none, and those with token IDs that the model does
    not have."""
    sampler, model = spec.sections.sampler, root.children[0].part
    decodes_frames = (
        sampler is not None
        and issubclass(sampler.cls, FrameSampler)
        and sampler.cls.decoding in schema.decoding
    )
    for blueprint in spec.sections.filters:
        if sampler is not None and decodes_frames:
            frames = f"sampler '{sampler.label}', which decodes {DECODING['frame']}"
            yield _problem(blueprint, f"cannot be used with {frames}; remove it")
        needed = _built(blueprint, root).min_vocab
        if needed and needed > (vocab := model.vocab_size("target")):
            yield _problem(
                blueprint,
                f"has token {needed - 1}, out of range for a vocabulary of {vocab:,} tokens",
            )


def metric_conflict(metric: type[Metric], schema: OutputSchema, model: str) -> str | None:
    """Return why a metric does not fit the outputs of a model, or None."""
    if metric.consumes in schema.predictions:
        return None
    given = " or ".join(PREDICTIONS[kind] for kind in schema.predictions) or "none"
    taken = PREDICTIONS.get(metric.consumes, metric.consumes)
    return f"takes {taken}, but {model} gives {given}"


def fitting_metrics(schema: OutputSchema, registry: ComponentRegistry) -> list[str]:
    """Return the names of the metrics that fit the outputs of a model, sorted."""
    metrics: list[Any] = [entry.cls for entry in registry.components("metric")]
    return sorted({metric.name for metric in metrics if metric.consumes in schema.predictions})


def _problem(
    blueprint: Blueprint[Any], message: str, fitting: Iterable[str] | None = None
) -> Problem:
    """Return the problem of a part; ``fitting`` are the names of components that can be used."""
    kind = blueprint.cls.kind
    text = f"{kind} '{blueprint.label}' {message}"
    if fitting is not None:
        names = ", ".join(sorted(set(fitting)))
        text += f"; {kind}s that fit: {names}" if names else f"; no {kind} fits, remove it"
    return Problem(text, blueprint.path, blueprint.place)


def _built(blueprint: Blueprint[Any], root: BuildNode) -> Any:
    return next(node.part for node in root.children if node.blueprint is blueprint)


def _sampler_problem(decoding: str, schema: OutputSchema, model: str) -> str | None:
    if decoding in schema.decoding:
        return None
    if not schema.decoding:
        return f"cannot be used: {model} does not generate"
    ways = " or ".join(DECODING.get(way, way) for way in schema.decoding)
    return f"decodes {DECODING.get(decoding, decoding)}, but {model} generates {ways}"


def _format_stochastic(tree: BuildNode) -> str:
    """Return the alignments that sample, with their places in the spec."""
    found = {
        node.blueprint.path: node.blueprint
        for node in tree.walk()
        if isinstance(node.part, Alignment) and node.part.is_stochastic
    }
    places = [f"{path} is '{blueprint.label}'" for path, blueprint in found.items()]
    return f" ({', '.join(places)})" if places else ""


def _fitting_objectives(schema: OutputSchema, registry: ComponentRegistry) -> Iterator[str]:
    """Yield the objectives that fit; slots of an objective are filled with other objectives."""
    classes: list[Any] = [entry.cls for entry in registry.components("objective")]
    plain = [cls for cls in classes if not _required(cls)]
    for cls in classes:
        if cls not in registry.requirements:
            registry.requirements[cls] = _distinct_requirements(cls, plain)
        if any(not any(each.problems(schema, "")) for each in registry.requirements[cls]):
            yield cls.name


def _distinct_requirements(cls: Any, plain: Sequence[Any]) -> list[OutputRequirement]:
    """Return what an objective needs, with each of the plain objectives in its slots."""
    slots = [parameter.name for parameter in _required(cls) if parameter.slot]
    found: list[OutputRequirement] = []
    if len(slots) < len(_required(cls)):
        return found  # it needs values that are not known here
    for parts in itertools.product(plain, repeat=len(slots)):
        try:
            with PluginCall():
                params = dict(zip(slots, map(Blueprint.of, parts), strict=True))
                requirement = Blueprint.of(cls, **params).build().required_outputs()
                if requirement.is_declared and requirement not in found:
                    found.append(requirement)
        except Exception:
            continue  # these parts do not fit, or a plugin has an error
    return found


def _required(cls: Any) -> list[Parameter]:
    return [p for p in parameters(cls) if p.required and not p.from_parent]
