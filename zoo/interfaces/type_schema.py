"""Validation of plain parameters by pydantic; a validator is built when it is needed."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

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
