"""The parts that an evaluation uses, with overrides of their parameters."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zoo.errors import RegistryError, SpecError, suggest
from zoo.interfaces import Filter, Metric, Model, Sampler
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.document import Document, document_from_data
from zoo.spec.merging import merge, parse_override
from zoo.spec.providers import require_installed
from zoo.spec.reader import SpecReader

PREPROCESSING, SAMPLER = "preprocessing", "sampler"


@dataclass(frozen=True)
class EvaluationSettings:
    """The built metrics, sampler and filters, and the section ``preprocessing``."""

    metrics: list[Metric]
    sampler: Sampler | None
    filters: list[Filter]
    preprocessing: dict[str, Any]
    sampler_part: Any
    """The sampler as in a spec."""


def read_settings(
    model: Model,
    metrics: Sequence[Any] | None,
    sampler: Any,
    filters: Sequence[Any] | None,
    overrides: Iterable[str],
    registry: ComponentRegistry,
) -> EvaluationSettings:
    """Return the given parts, or those of the model's spec, built with the overrides.

    Args:
        metrics: names, parts as in a spec, or instances. A name that the spec has keeps the
            parameters of the spec.
        overrides: such as ``sampler.width=8``, ``bleu.tokenize=intl`` or
            ``preprocessing.source=text``.
    """
    spec = model.spec or {}
    own = _by_name(spec.get("metrics") or ())
    if metrics is None:
        require_installed(spec.get("metrics"), model.providers, registry)
        metrics = list(own.values())
    if sampler is None and model.generation_input is not None:
        sampler = spec.get(SAMPLER)
        require_installed(sampler, model.providers, registry)
    instances = [part for part in metrics if isinstance(part, Metric)]
    parts = {
        name: own.get(name, part) if isinstance(part, str) else dict(part)
        for name, part in _by_name([m for m in metrics if not isinstance(m, Metric)]).items()
    }
    data = {PREPROCESSING: dict(spec.get(PREPROCESSING) or {}), **parts}
    if not isinstance(sampler, Sampler):
        data[SAMPLER] = dict(sampler) if isinstance(sampler, Mapping) else sampler
    document = apply_overrides(data, overrides, "parts of the evaluation")
    built = build_parts(Metric, document, parts, registry)
    if document.data.get(SAMPLER) is not None:
        sampler = build_parts(Sampler, document, [SAMPLER], registry)[SAMPLER]
    return EvaluationSettings(
        [*built.values(), *instances],
        sampler,
        _build_filters(spec.get("filters") or () if filters is None else filters, registry),
        document.data[PREPROCESSING],
        document.data.get(SAMPLER, getattr(sampler, "name", None)),
    )


def _build_filters(parts: Sequence[Any], registry: ComponentRegistry) -> list[Filter]:
    names = [f"filters[{i}]" for i in range(len(parts))]
    given = {n: p for n, p in zip(names, parts, strict=True) if not isinstance(p, Filter)}
    built = build_parts(Filter, document_from_data(given), given, registry)
    return [built.get(name, part) for name, part in zip(names, parts, strict=True)]


def apply_overrides(data: Mapping[str, Any], overrides: Iterable[str], what: str) -> Document:
    """Return the parts as a document, with ``NAME.PARAMETER=VALUE`` set in it.

    Args:
        what: what the names are, for messages.
    """
    document = document_from_data(dict(data))
    for text in overrides:
        document = merge(document, parse_override(text, document, "bleu.tokenize=intl"))
        for key in document.data:
            if key not in data:
                message = f"--set {text}: '{key}' is not one of the {what}{suggest(key, data)}"
                raise RegistryError(message)
    return document


def build_parts(
    interface: Any, document: Document, names: Iterable[str], registry: ComponentRegistry
) -> dict[str, Any]:
    """Return the built parts of a document; parameters are validated as in a spec."""
    reader = SpecReader(document, registry)
    parts = {name: reader.part(interface, document.data[name], (name,)) for name in names}
    if reader.problems:
        raise SpecError(reader.problems)
    return {name: part.build() for name, part in parts.items() if part is not None}


def unique_name(name: str, used: Container[str]) -> str:
    """Return the name, followed by a number if it is used already."""
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return name if name not in used else next(other for other in numbered if other not in used)


def _by_name(parts: Sequence[Any]) -> dict[str, Any]:
    """Return components of a spec by their names without plugin, equal names with a number."""
    found: dict[str, Any] = {}
    for part in parts:
        name = part.get("type") if isinstance(part, Mapping) else part
        found[unique_name(str(name).rpartition(":")[2], found)] = part
    return found
