"""The benchmarks of a run and their parameters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from zoo.errors import SpecError, ZooError
from zoo.interfaces import Entry
from zoo.interfaces.signature import parameters
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import resolve_device
from zoo.spec.document import document_from_data
from zoo.spec.merging import merge, parse_override
from zoo.spec.reader import SpecReader
from zoo_lab.bench.benchmark import Benchmark
from zoo_lab.bench.registered import benchmarks


@dataclass(frozen=True)
class BenchmarkCase:
    """A benchmark with parameters.

    Attributes:
        entry: the registered benchmark.
        overrides: options such as ``batch=8``.
        changed: the parameters of the overrides.
    """

    entry: Entry
    overrides: Sequence[str] = ()
    changed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def params(self) -> dict[str, Any]:
        """All parameters."""
        defaults = {p.name: p.default for p in parameters(self.entry.cls) if not p.required}
        return {**defaults, **self.changed}

    def build(self) -> Benchmark:
        """Build the benchmark; raise SpecError if a parameter is not valid."""
        document = document_from_data({})
        for text in self.overrides:
            document = merge(document, parse_override(text, document, "batch=8"))
        reader = SpecReader(document, ComponentRegistry())
        blueprint = reader.part(self.entry.cls, document.data)
        if blueprint is None or reader.problems:
            raise SpecError(reader.problems)
        benchmark: Benchmark = blueprint.build()
        return benchmark


def select_cases(
    names: Sequence[str],
    device_type: str,
    overrides: Sequence[str] = (),
    available: Sequence[Entry] | None = None,
) -> list[BenchmarkCase]:
    """Return the named benchmarks, or all whose targets hold on a device type.

    Args:
        available: by default the benchmarks of the installed plugins.

    Raises:
        RegistryError: if a name is not known.
        SpecError: if a parameter is not valid.
    """
    available = benchmarks() if available is None else available
    if names:
        select = default_registry().select
        entries = [select(Benchmark.kind, name, available) for name in names]
    else:
        entries = [entry for entry in available if _holds_on(entry, device_type)]
    cases = [BenchmarkCase(entry, tuple(overrides), _changed(overrides)) for entry in entries]
    for case in cases:
        case.build()
    return cases


def has_sweep(case: BenchmarkCase) -> bool:
    """Whether the benchmark names values of parameters for which the growth is shown."""
    return any(sweep_cases(case))


def sweep_cases(case: BenchmarkCase) -> Iterator[BenchmarkCase]:
    """Yield the benchmark for each value of each parameter of its `sweep`."""
    cls = case.entry.cls
    assert issubclass(cls, Benchmark)
    for name, values in cls.sweep.items():
        for value in values:
            given = value if isinstance(value, Mapping) else {name: value}
            added = (f"{key}={json.dumps(part)}" for key, part in given.items())
            overrides = (*case.overrides, *added)
            yield replace(case, overrides=overrides, changed=_changed(overrides))


def _holds_on(entry: Entry, device_type: str) -> bool:
    return issubclass(entry.cls, Benchmark) and entry.cls.device_type == device_type


def _changed(overrides: Iterable[str]) -> dict[str, Any]:
    document = document_from_data({})
    for text in overrides:
        document = merge(document, parse_override(text, document, "batch=8"))
    return dict(document.data)


def find_device(name: str | None) -> torch.device:
    """Return a device by name, or a GPU if there is one; raise ZooError if it is not available."""
    device = resolve_device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    if device.type not in ("cpu", "cuda"):
        raise ZooError(f"benchmarks run on the devices cpu and cuda, not on '{name}'")
    return device
