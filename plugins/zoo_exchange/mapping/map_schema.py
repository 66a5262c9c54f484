"""The schema of a map file: its sections, their entries and the operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from zoo.registry.blueprint import Blueprint
from zoo_exchange.mapping.combine_ops import Add, Join, Split, WeightNorm
from zoo_exchange.mapping.copy_ops import Copy, Merge
from zoo_exchange.mapping.fill_value import FillName
from zoo_exchange.mapping.operation import Operation
from zoo_exchange.mapping.reorder_ops import Gates, Rotary
from zoo_exchange.mapping.shape_ops import (
    Cast,
    Pad,
    Permute,
    Reshape,
    Slice,
    Squeeze,
    Transpose,
    Unsqueeze,
)

OPERATIONS: Mapping[str, type[Operation]] = {
    operation.name: operation
    for operation in (
        *(Transpose, Permute, Reshape, Squeeze, Unsqueeze, Slice, Pad, Cast),
        *(Gates, Rotary, Split, Join, Add, WeightNorm, Copy, Merge),
    )
}

TensorNames = str | Sequence[str | Mapping[str, Any]]


class ConvertSchema:
    """A rule with operations."""

    def __init__(
        self, *, theirs: TensorNames, ours: TensorNames, do: Sequence[Any] = ()
    ) -> None: ...


class EndpointSchema:
    """One of several tensors of a rule, with its own operations."""

    def __init__(self, *, name: str, do: Sequence[Any] = ()) -> None: ...


class DropSchema:
    """Tensors that may be left unused, and what an export writes for them.

    A `purpose` says what they are for: the import names them, because an export lacks them. Copies
    of other tensors and what is computed again have none. `classes` are the classes of the other
    library that have them, and initialise them where an export does not.
    """

    def __init__(
        self,
        *,
        name: str,
        export: Literal["omit"] | FillName | float | None = None,
        shape: Sequence[Annotated[int, Field(ge=0)]] | None = None,
        purpose: str = "",
        classes: Sequence[str] = (),
    ) -> None: ...


class MapSchema:
    """The sections of a map."""

    def __init__(
        self,
        *,
        zoo: Annotated[int, Field(ge=1, le=1)],
        description: str = "",
        values: Mapping[str, int | str | Sequence[str]] | None = None,
        prefix: str = "",
        endings: Mapping[str, str] | None = None,
        rename: Mapping[str, str] | None = None,
        convert: Sequence[Blueprint[ConvertSchema]] = (),
        fill: Mapping[str, FillName | float] | None = None,
        drop: Sequence[str | Mapping[str, Any]] = (),
    ) -> None: ...
