"""A constructor's signature, read as a schema.

A parameter is one of three things: plain (an int, a choice, a list; pydantic checks it), a slot
(`Blueprint[Kind]`, filled by another part), or given (`FromParent[int]`, supplied by the parent that
builds the part and so no business of a spec).
"""

from __future__ import annotations

import copy
import inspect
import json
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from torch import nn

T = TypeVar("T")
ParameterError = tuple[tuple[str | int, ...], str]
"""The path inside a value, and what is wrong there."""


class _FromParent:
    """Marks a parameter that the parent supplies."""


FromParent = Annotated[T, _FromParent()]
"""``input_dim: FromParent[int]``: the parent that builds the part knows it; a spec must not set it."""

REQUIRED: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Slot:
    """A parameter that another part fills."""

    target: type
    many: bool = False
    optional: bool = False


class _TypeSchema:
    """What a plain parameter can be; costly to make, so parameters of one type share it."""

    def __init__(self, annotation: Any) -> None:
        self.adapter: TypeAdapter[Any] = TypeAdapter(annotation)

    @cached_property
    def schema(self) -> dict[str, Any]:
        return self.adapter.json_schema()


_types: dict[Any, _TypeSchema] = {}


def _get_type_schema(annotation: Any) -> _TypeSchema:
    marks = getattr(annotation, "__metadata__", ())
    alike = marks and all(isinstance(mark, FieldInfo) for mark in marks)
    # Two calls of Field are never equal, but what they say may be.
    key = (annotation.__origin__, repr(marks)) if alike else annotation
    try:
        known = _types.get(key)
    except TypeError:  # it cannot be a key
        return _TypeSchema(annotation)
    if known is None:
        known = _types[key] = _TypeSchema(annotation)
    return known


@dataclass(frozen=True)
class Parameter:
    """One parameter of a component's constructor."""

    name: str
    annotation: Any
    default: Any
    from_parent: bool
    slot: Slot | None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @cached_property
    def _type(self) -> _TypeSchema:
        return _get_type_schema(self.annotation)

    def validate(self, value: Any) -> list[ParameterError]:
        """Why the value is refused; empty if it is fine."""
        return self.parse(value)[1]

    def parse(self, value: Any) -> tuple[Any, list[ParameterError]]:
        """The value as the constructor takes it, and why it is refused.

        A spec holds what JSON holds, so a list will do for a tuple, but no text for a number.
        """
        try:
            return self._type.adapter.validate_json(json.dumps(value), strict=True), []
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            return value, [(tuple(fault["loc"]), _to_yaml_terms(fault["msg"])) for fault in found]
        except (TypeError, ValueError, RecursionError):
            return value, [((), "should be a plain value: text, number, list or mapping")]

    def json_schema(self) -> dict[str, Any]:
        return copy.deepcopy(self._type.schema)

    def __hash__(self) -> int:
        return hash(self.name)


def _to_yaml_terms(message: str) -> str:
    """What JSON calls an array and an object, a spec's author calls a list and a mapping."""
    return message.replace("a valid array", "a valid list").replace("an object", "a mapping")


def parameters(cls: type[Any]) -> tuple[Parameter, ...]:
    """The parameters of a class's constructor, or TypeError if it is no schema."""
    return _parameters(cast(Any, cls))


@cache
def _parameters(cls: Any) -> tuple[Parameter, ...]:
    constructor = cls.__init__
    if constructor in (object.__init__, nn.Module.__init__):
        return ()  # it has none of its own
    try:
        hints = typing.get_type_hints(constructor, include_extras=True)
    except Exception as error:
        raise TypeError(
            f"the types of {cls.__name__}'s constructor do not resolve: {error}"
        ) from None
    found = []
    for parameter in list(inspect.signature(constructor).parameters.values())[1:]:
        rule = _check_parameter(parameter, hints)
        if rule:
            raise TypeError(f"{cls.__name__}.__init__: parameter '{parameter.name}' {rule}")
        annotation = hints[parameter.name]
        from_parent = any(
            isinstance(mark, _FromParent) for mark in getattr(annotation, "__metadata__", ())
        )
        slot = None if from_parent else _parse_slot(annotation)
        read = Parameter(parameter.name, annotation, parameter.default, from_parent, slot)
        rule = None if from_parent or slot else _check_serializable(read)
        if rule:
            raise TypeError(f"{cls.__name__}.__init__: parameter '{parameter.name}' {rule}")
        found.append(read)
    return tuple(found)


def _check_serializable(parameter: Parameter) -> str | None:
    """Why no spec could write a value of a plain parameter."""
    if _contains_slot(parameter.annotation):
        forms = "Blueprint[K], Blueprint[K] | None and Sequence[Blueprint[K]]"
        return f"holds blueprints, but is none of {forms}"
    try:
        parameter.json_schema()
    except Exception as error:
        return f"has a type that no spec can write: {str(error).splitlines()[0]}"
    return None


def _contains_slot(annotation: Any) -> bool:
    if getattr(get_origin(annotation), "fills_slots", False):
        return True
    return any(_contains_slot(argument) for argument in get_args(annotation))


def _check_parameter(parameter: inspect.Parameter, hints: dict[str, Any]) -> str | None:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        return "collects arguments (*args or **kwargs), so a misspelt key would pass unseen"
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return "must be keyword-only (put a bare * before it)"
    if parameter.name not in hints:
        return "has no type"
    if parameter.name == "type":
        return "cannot be called 'type', the key by which a spec names the part"
    return None


def _parse_slot(annotation: Any) -> Slot | None:
    """Blueprint[K], Blueprint[K] | None and Sequence[Blueprint[K]] are slots."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if getattr(origin, "fills_slots", False):
        return Slot(arguments[0])
    if origin in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        inner = _parse_slot(next(a for a in arguments if a is not type(None)))
        return inner and Slot(inner.target, inner.many, optional=True)
    if origin is Sequence and arguments:
        inner = _parse_slot(arguments[0])
        return inner and Slot(inner.target, many=True)
    return None
