"""Small configurations of a component under test."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import torch
from torch import nn

from zoo.errors import SpecError, WidthConflict
from zoo.interfaces import KINDS, Component, Embedding, Preprocessor
from zoo.interfaces.importer import Importer
from zoo.interfaces.signature import Parameter, parameters
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.document import document_from_data
from zoo.spec.reader import SpecReader
from zoo.testing.tiny import PLUGIN, TINY_COMPONENTS, TinyEmbedding

TINY = 8
"""Value of sizes without a default, or with a default above LARGE."""
LARGE = 16
_PLUGIN = "under-test"

# Values from the parent. Unequal sizes first; components that reject them get equal sizes.
PARENT_VALUES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "backbone": ({"channels": 2}, {"channels": 3}),
    "position": ({"dim": 8, "heads": 2, "head_dim": 4, "causal": True},),
    "scorer": ({"query_dim": 5, "key_dim": 3}, {"query_dim": 4, "key_dim": 4}),
    "alignment": ({"query_dim": 4, "heads": 1},),
    "encoder": ({"input_dim": 5},),
    "decoder": (
        {"memory_dim": 6, "summary_dim": 4, "carry": {}},
        {"memory_dim": TINY, "summary_dim": TINY, "carry": {}},
    ),
    "schedule": ({"steps": 50},),
}


@dataclass(frozen=True)
class Configuration:
    """One configuration of one component."""

    cls: type[Component]
    params: Mapping[str, Any]
    overrides: Mapping[str, Any]
    """The parameters that differ from the first configuration."""

    @property
    def kind(self) -> str:
        return self.cls.kind

    @property
    def name(self) -> str:
        return self.cls.name

    @property
    def label(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.overrides.items())

    @cached_property
    def registry(self) -> ComponentRegistry:
        """The installed components, the tiny ones, and the component under test."""
        tiny = default_registry().with_components(TINY_COMPONENTS, plugin=PLUGIN)
        return tiny.with_components([self.cls], plugin=_PLUGIN)

    @property
    def data(self) -> dict[str, Any]:
        """The configuration as written in a spec."""
        return {"type": f"{_PLUGIN}:{self.cls.name}", **self.params}

    def blueprint(self) -> Blueprint[Any]:
        """Return the validated configuration; raise SpecError if it is invalid."""
        reader = SpecReader(document_from_data(self.data), self.registry)
        blueprint = reader.part(KINDS[self.cls.kind], self.data)
        if blueprint is None or reader.problems:
            raise SpecError(reader.problems)
        return blueprint

    def parent_values(self) -> Mapping[str, Any]:
        """Return the first set of values from the parent that the component accepts."""
        if issubclass(self.cls, Preprocessor):
            return {"schema": self.cls.example_schema(), "stored": self.cls.example_stored()}
        if self.cls.kind == "part":
            return {name: TINY for name, of in self._parent_types() if of is int}
        return self._accepted_parent_values

    def parent_parts(self) -> dict[str, Any]:
        """Return the components that the parent passes, built on the default device."""
        return {name: TinyEmbedding() for name, of in self._parent_types() if of is Embedding}

    def build(self, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> Any:
        """Build a new instance; modules are in evaluation mode."""
        values = self.parent_values()  # may sample, on the first call
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            part = self.blueprint().build(**values, **self.parent_parts())
        return part.to(dtype).eval() if isinstance(part, nn.Module) else part

    @cached_property
    def _accepted_parent_values(self) -> Mapping[str, Any]:
        """The first values for the kind that the component accepts; the last if it rejects all."""
        options = PARENT_VALUES.get(self.cls.kind, ({},))
        for values in options[:-1]:
            try:
                with torch.random.fork_rng(devices=[]):
                    self.blueprint().build(**values, **self.parent_parts())
            except SpecError as error:
                if isinstance(error.__cause__, WidthConflict):
                    continue
                raise
            return values
        return options[-1]

    def _parent_types(self) -> list[tuple[str, Any]]:
        """Return name and type of each parameter that the parent supplies."""
        return [(p.name, p.annotation.__origin__) for p in parameters(self.cls) if p.from_parent]


def configurations(cls: type[Component], **params: Any) -> Iterator[Configuration]:
    """Yield the smallest configuration, then one for each other value of a parameter to test."""
    base = {**small_params(cls), **cls.test_params, **params}
    yield Configuration(cls, base, params)
    if params:
        return
    for parameter in parameters(cls):
        for value in _alternatives(parameter, base):
            yield Configuration(cls, {**base, parameter.name: value}, {parameter.name: value})


def small_params(cls: type) -> dict[str, Any]:
    """Return small values for required parameters and for those with a large default."""
    params: dict[str, Any] = {}
    for parameter in parameters(cls):
        if parameter.from_parent:
            continue
        if parameter.slot:
            if parameter.required:
                target = parameter.slot.target
                known = target in KINDS.values()
                part = f"{PLUGIN}:tiny" if known else small_params(target)
                params[parameter.name] = parameter.slot.value(part)
        elif parameter.required or _is_large(parameter.default):
            value = _small_value(parameter)
            if value is not None:
                params[parameter.name] = value
    return params


def _is_large(default: Any) -> bool:
    return type(default) is int and default > LARGE


def _small_value(parameter: Parameter) -> Any:
    """Return a small valid value, or None if none is found."""
    choices = _literal_values(parameter.annotation)
    for value in (*choices, TINY, 0.5, "tiny"):
        if not parameter.validate(value):
            return value
    return None


def _alternatives(parameter: Parameter, base: Mapping[str, Any]) -> Iterator[Any]:
    if parameter.from_parent or parameter.slot:
        return
    value = base.get(parameter.name, parameter.default)
    candidates: tuple[Any, ...] = _literal_values(parameter.annotation)
    if type(value) is int and value == 1:
        candidates = (2,)
    elif type(value) is float and value == 0.0:
        candidates = (0.25,)
    for candidate in candidates:
        different = candidate != value or type(candidate) is not type(value)
        if different and not parameter.validate(candidate):
            yield candidate


def _literal_values(annotation: Any) -> tuple[Any, ...]:
    """Return the values of a Literal or a bool, also inside Annotated and unions."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is bool:
        return (False, True)
    if origin is Literal:
        return arguments
    if origin is Annotated:
        return _literal_values(arguments[0])
    if origin in (Union, types.UnionType):
        return tuple(value for argument in arguments for value in _literal_values(argument))
    return ()


@dataclass(frozen=True)
class ImporterConfiguration:
    """An importer, for laws; the counterpart of a `Configuration` of a component."""

    importer: Importer
    kind: str = "importer"
    label: str = ""

    @property
    def name(self) -> str:
        return self.importer.name
