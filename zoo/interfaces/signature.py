"""Schema of a component, derived from the signature of its constructor.

A parameter is plain (an int, a choice, a list; validated by pydantic), a slot (`Blueprint[Kind]`,
another component), or from the parent (`FromParent[int]`, supplied by the parent that builds the
component; a spec cannot set it). A parameter whose type is a dataclass is a group: its fields are
parameters of the component, and a spec sets them like the others.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from torch import nn

from zoo.files import FILE_NAME

_VALUES: tuple[Any, ...] = (bool, int, float, str, None, type(None))
_CONTAINERS = (Sequence, Mapping, list, dict, tuple, Union, types.UnionType)


def is_plain(annotation: Any) -> bool:
    """Return whether a type has plain values only, which needs no validator to be known."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is None:
        return annotation in _VALUES
    if origin is Literal:
        return all(type(value) in _VALUES for value in inner)
    return origin in _CONTAINERS and all(each is ... or is_plain(each) for each in inner)


class TypeSchema:
    """Validation of a plain parameter; costly to build, so shared by parameters of one type."""

    def __init__(self, annotation: Any) -> None:
        self.adapter: TypeAdapter[Any] = TypeAdapter(annotation)

    @cached_property
    def schema(self) -> dict[str, Any]:
        return self.adapter.json_schema()


_types: dict[Any, TypeSchema] = {}


def get_type_schema(annotation: Any) -> TypeSchema:
    metadata = getattr(annotation, "__metadata__", ())
    only_fields = metadata and all(isinstance(item, FieldInfo) for item in metadata)
    # Fields with the same content are not equal, but have the same repr.
    key = (annotation.__origin__, repr(metadata)) if only_fields else annotation
    try:
        schema = _types.get(key)
    except TypeError:  # not hashable
        return TypeSchema(annotation)
    if schema is None:
        schema = _types[key] = TypeSchema(annotation)
    return schema


T = TypeVar("T")
ParameterProblem = tuple[tuple[str | int, ...], str]
"""Path inside a value, and the error message."""
_NAME = "should start with a letter or digit, and have only these, '.', '_' and '-'"
_MAX_INTEGER = 2**63 - 1  # of torch
_NOT_PLAIN = "should be a plain value: string, number, boolean, null, list or mapping"


class _FromParent:
    """Marker of a parameter that the parent supplies."""


FromParent = Annotated[T, _FromParent()]
"""``input_dim: FromParent[int]``: supplied by the parent at build time, not by a spec."""

REQUIRED: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Slot:
    """A parameter that takes another component."""

    target: type
    many: bool = False
    optional: bool = False
    named: bool = False
    """Whether the slot takes a mapping of names to components."""

    def parts(self, value: Any) -> list[Any]:
        """Return the components in the value of the slot, which may be one, several or none."""
        if value is None:
            return []
        if self.named:
            return list(value.values())
        return list(value) if self.many else [value]

    def value(self, part: Any) -> Any:
        """Return the value of the slot with one component."""
        if self.named:
            return {"part": part}
        return [part] if self.many else part


@dataclass(frozen=True)
class ParameterGroup:
    """A dataclass of parameters, and the name of the constructor's parameter that takes it."""

    name: str
    cls: type[Any]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a component's constructor, or of a group of it."""

    name: str
    annotation: Any
    default: Any
    from_parent: bool
    slot: Slot | None
    group: ParameterGroup | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @cached_property
    def _type(self) -> TypeSchema:
        return get_type_schema(self.annotation)

    def validate(self, value: Any) -> list[ParameterProblem]:
        """Return the errors of a value, empty if it is valid."""
        return self.parse(value)[1]

    def parse(self, value: Any) -> tuple[Any, list[ParameterProblem]]:
        """Return the value as the constructor takes it, and its errors.

        The value is validated as strict JSON: a list is valid for a tuple, but a string is not
        valid for a number.
        """
        try:
            parsed = self._type.adapter.validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_context=False, include_input=False)
            return value, [(tuple(e["loc"]), _to_yaml_terms(e["msg"])) for e in errors]
        except (TypeError, ValueError, RecursionError):
            return value, [((), _NOT_PLAIN)]
        if isinstance(parsed, int) and abs(parsed) > _MAX_INTEGER:
            return value, [((), "should be an integer of at most 64 bits")]
        return parsed, []

    def json_schema(self) -> dict[str, Any]:
        return copy.deepcopy(self._type.schema)

    def __hash__(self) -> int:
        return hash(self.name)


def _to_yaml_terms(message: str) -> str:
    """Replace the JSON terms array and object by the YAML terms list and mapping, and the pattern
    of names by words."""
    message = message.replace(f"String should match pattern '{FILE_NAME}'", _NAME)
    return message.replace("a valid array", "a valid list").replace("an object", "a mapping")


def parameters(cls: type[Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a constructor; raise TypeError if it is not a valid schema."""
    return _parameters(cast(Any, cls))


def constructor_arguments(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parameters as the constructor takes them: groups as dataclasses."""
    arguments: dict[str, Any] = {}
    groups: dict[ParameterGroup, dict[str, Any]] = {}
    for parameter in parameters(cls):
        given = {parameter.name: values[parameter.name]} if parameter.name in values else {}
        if parameter.group:
            groups.setdefault(parameter.group, {}).update(given)
        else:
            arguments |= given
    return arguments | {group.name: group.cls(**given) for group, given in groups.items()}


def parameter_names(cls: type[Any]) -> list[str]:
    """Return the names of the parameters of a constructor, also of one that is not a schema."""
    try:
        return [parameter.name for parameter in parameters(cls)]
    except TypeError:
        return list(inspect.signature(cls).parameters)


@cache
def _parameters(cls: Any) -> tuple[Parameter, ...]:
    constructor = cls.__init__
    if constructor in (object.__init__, nn.Module.__init__):
        return ()
    found: dict[str, Parameter] = {}
    label = f"{cls.__name__}.__init__"
    hints = _type_hints(constructor, label)
    for declared in list(inspect.signature(constructor).parameters.values())[1:]:
        problem = _check_parameter(declared, hints)
        if problem:
            raise TypeError(f"{label}: parameter '{declared.name}' {problem}")
        annotation = hints[declared.name]
        added = (
            _group_parameters(ParameterGroup(declared.name, annotation))
            if _is_group(annotation)
            else [_parameter(label, declared.name, annotation, declared.default)]
        )
        for parameter in added:
            if parameter.name in found:
                raise TypeError(f"{label}: parameter '{parameter.name}' is declared twice")
            found[parameter.name] = parameter
    return tuple(found.values())


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)


def _group_parameters(group: ParameterGroup) -> list[Parameter]:
    """Return the fields of a group as parameters."""
    label, found = group.cls.__name__, []
    hints = _type_hints(group.cls, label)
    for field in dataclasses.fields(group.cls):
        if _is_group(hints[field.name]):
            raise TypeError(f"{label}: parameter '{field.name}' is a group inside of a group")
        default = REQUIRED if field.default is dataclasses.MISSING else field.default
        parameter = _parameter(label, field.name, hints[field.name], default)
        found.append(replace(parameter, group=group))
    return found


def _type_hints(annotated: Any, label: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(annotated, include_extras=True)
    except Exception as error:
        raise TypeError(f"the type annotations of {label} cannot be resolved: {error}") from None


def _parameter(label: str, name: str, annotation: Any, default: Any) -> Parameter:
    from_parent = any(
        isinstance(item, _FromParent) for item in getattr(annotation, "__metadata__", ())
    )
    slot = None if from_parent else _parse_slot(annotation)
    parameter = Parameter(name, annotation, default, from_parent, slot)
    problem = None if from_parent or slot else _check_serializable(parameter)
    if name == "type":
        problem = "cannot be named 'type', which is the key for the component's name in a spec"
    if problem:
        raise TypeError(f"{label}: parameter '{name}' {problem}")
    return parameter


def _check_serializable(parameter: Parameter) -> str | None:
    """Return why the values of a plain parameter cannot be written in a spec, or None."""
    if _contains_slot(parameter.annotation):
        forms = "Blueprint[K], Blueprint[K] | None, Sequence[...] or Mapping[str, ...] of them"
        return f"contains blueprints, but its type is not {forms}"
    if is_plain(parameter.annotation):
        return None
    try:
        parameter.json_schema()
    except Exception as error:
        return f"has a type that cannot be written in a spec: {str(error).splitlines()[0]}"
    return None


def _contains_slot(annotation: Any) -> bool:
    if getattr(get_origin(annotation), "fills_slots", False):
        return True
    return any(_contains_slot(argument) for argument in get_args(annotation))


def _check_parameter(parameter: inspect.Parameter, hints: dict[str, Any]) -> str | None:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        return "must not be *args or **kwargs; declare each parameter"
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return "must be keyword-only (put a bare * before it)"
    if parameter.name not in hints:
        return "has no type annotation"
    if _is_group(hints[parameter.name]) and parameter.default is not REQUIRED:
        fields = dataclasses.fields(hints[parameter.name])
        if any(getattr(parameter.default, field.name) != field.default for field in fields):
            return "is a group, whose fields have the defaults; its own must be the same"
    return None


def _parse_slot(annotation: Any) -> Slot | None:
    """Return the slot for Blueprint[K], or None, a sequence or a mapping of them."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if getattr(origin, "fills_slots", False):
        return Slot(arguments[0])
    if origin in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        inner = _parse_slot(next(a for a in arguments if a is not type(None)))
        return inner and replace(inner, optional=True)
    if origin is Sequence and arguments:
        inner = _parse_slot(arguments[0])
        return inner and Slot(inner.target, many=True)
    if origin is Mapping and arguments and arguments[0] is str:
        inner = _parse_slot(arguments[1])
        return inner and Slot(inner.target, named=True)
    return None
