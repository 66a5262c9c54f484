from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional

import pytest
import torch
from pydantic import Field
from torch import nn

from zoo.interfaces import Component
from zoo.interfaces.signature import REQUIRED, Slot, constructor_arguments, parameters
from zoo.plugin import Alignment, Attention, Blueprint, FromParent, Scorer
from zoo.registry.component_registry import default_registry
from zoo_bahdanau.additive import Additive


class Plain:
    def __init__(
        self,
        *,
        width: FromParent[int],
        count: Annotated[int, Field(ge=1, le=9)],
        rate: float = 0.5,
        flag: bool = False,
        choice: Literal["a", "b"] = "a",
        sizes: list[int] | None = None,
        pair: tuple[int, int] = (1, 2),
    ) -> None:
        pass


class Slotted:
    def __init__(
        self,
        *,
        one: Blueprint[Scorer],
        maybe: Blueprint[Alignment] | None = None,
        perhaps: Optional[Blueprint[Alignment]] = None,  # noqa: UP045
        many: Sequence[Blueprint[Attention]] = (),
        many_or_none: Sequence[Blueprint[Attention]] | None = None,
        from_parent: FromParent[Blueprint[Scorer]],
        number: int = 1,
    ) -> None:
        pass


def named(cls: type) -> dict[str, Any]:
    return {parameter.name: parameter for parameter in parameters(cls)}


def test_parameters_have_the_order_and_defaults_of_the_signature():
    found = parameters(Plain)
    assert [p.name for p in found] == [
        "width",
        "count",
        "rate",
        "flag",
        "choice",
        "sizes",
        "pair",
    ]
    assert [p.default for p in found[:4]] == [REQUIRED, REQUIRED, 0.5, False]
    assert [p.required for p in found[:4]] == [True, True, False, False]


def test_parameters_from_the_parent_are_marked():
    assert [name for name, p in named(Plain).items() if p.from_parent] == ["width"]
    assert [name for name, p in named(Additive).items() if p.from_parent] == [
        "query_dim",
        "key_dim",
    ]


def test_slots_are_blueprints_optional_blueprints_or_sequences_of_blueprints():
    assert {name: p.slot for name, p in named(Slotted).items()} == {
        "one": Slot(Scorer),
        "maybe": Slot(Alignment, optional=True),
        "perhaps": Slot(Alignment, optional=True),
        "many": Slot(Attention, many=True),
        "many_or_none": Slot(Attention, many=True, optional=True),
        "from_parent": None,
        "number": None,
    }


def test_a_class_without_a_constructor_has_no_parameters():
    class Bare:
        pass

    class Module(nn.Module):
        pass

    assert parameters(Bare) == ()
    assert parameters(Module) == ()


def test_an_inherited_constructor_is_used():
    class Child(Additive):
        pass

    assert [p.name for p in parameters(Child)] == ["query_dim", "key_dim", "hidden", "project"]


@dataclass(frozen=True, kw_only=True)
class Size:
    width: FromParent[int]
    hidden: Annotated[int, Field(ge=1)]
    layers: Annotated[int, Field(ge=1)] = 2


class Grouped(Component):
    name = "grouped"

    def __init__(
        self, *, align: Blueprint[Alignment] | None = None, size: Size, flag: bool
    ) -> None:
        self.size, self.flag = size, flag
        self.hidden = size.hidden


def test_the_fields_of_a_dataclass_are_parameters():
    found = {p.name: p for p in parameters(Grouped)}
    assert list(found) == ["align", "width", "hidden", "layers", "flag"]
    assert found["width"].from_parent
    assert found["hidden"].required
    assert found["layers"].default == 2
    assert found["hidden"].validate(0)


def test_a_group_is_built_from_the_parameters_of_a_spec():
    part = Blueprint.of(Grouped, hidden=3, flag=True).build(width=4)
    assert part.size == Size(width=4, hidden=3, layers=2)
    assert part.flag
    assert part.extra_repr() == "hidden=3, flag=True"
    assert Blueprint.of(Grouped, hidden=3, flag=True).resolve() == {
        "align": None,
        "hidden": 3,
        "layers": 2,
        "flag": True,
    }


def test_arguments_that_are_not_set_take_the_defaults_of_the_group():
    values = {"width": 1, "hidden": 2, "flag": False}
    arguments = constructor_arguments(Grouped, values)
    assert arguments == {"size": Size(width=1, hidden=2), "flag": False}


@dataclass(frozen=True)
class Shape:
    width: int = 1


class WithDefault:
    def __init__(self, *, shape: Shape = Shape()) -> None: ...  # noqa: B008


def test_the_default_of_a_group_is_that_of_its_fields():
    (width,) = parameters(WithDefault)
    assert (width.name, width.default) == ("width", 1)
    assert constructor_arguments(WithDefault, {}) == {"shape": Shape()}


@dataclass
class Nested:
    size: Size


@dataclass
class Typed:
    type: str


def grouped_twice(self, *, size: Size, hidden: int) -> None: ...
def nested(self, *, nested: Nested) -> None: ...
def typed_field(self, *, typed: Typed) -> None: ...
def default_group(self, *, size: Size = Size(width=1, hidden=1)) -> None: ...  # noqa: B008
def positional(self, width: int) -> None: ...
def collecting(self, **options: int) -> None: ...
def gathering(self, *items: int) -> None: ...
def untyped(self, *, width) -> None: ...
def typed_type(self, *, type: str) -> None: ...
def unresolved(self, *, width: "Nowhere") -> None: ...  # noqa: F821
def of_tensors(self, *, weights: torch.Tensor) -> None: ...
def of_modules(self, *, inner: nn.Module) -> None: ...
def of_other_slots(self, *, parts: list[Blueprint[Scorer]]) -> None: ...


@pytest.mark.parametrize(
    ("constructor", "reason"),
    [
        (positional, "parameter 'width' must be keyword-only"),
        (collecting, r"parameter 'options' must not be \*args or \*\*kwargs"),
        (gathering, r"parameter 'items' must not be \*args or \*\*kwargs"),
        (untyped, "parameter 'width' has no type"),
        (typed_type, "parameter 'type'"),
        (grouped_twice, "parameter 'hidden' is declared twice"),
        (nested, "Nested: parameter 'size' is a group inside of a group"),
        (typed_field, "Typed: parameter 'type'"),
        (default_group, "parameter 'size' is a group, whose fields have the defaults"),
        (unresolved, "Invalid.__init__.*Nowhere"),
        (of_tensors, "parameter 'weights'"),
        (of_modules, "parameter 'inner'"),
        (of_other_slots, "parameter 'parts'"),
    ],
)
def test_an_invalid_constructor_raises_type_error_with_the_reason(constructor, reason):
    invalid = type("Invalid", (), {"__init__": constructor})
    with pytest.raises(TypeError, match=reason):
        parameters(invalid)


VALID = [
    ("count", 1),
    ("count", 9),
    ("rate", 0.25),
    ("rate", 3),
    ("rate", float("inf")),
    ("flag", True),
    ("choice", "b"),
    ("sizes", [1, 2]),
    ("sizes", []),
    ("sizes", None),
    ("pair", [3, 4]),  # JSON and YAML have no tuples
]
INVALID = [
    ("count", "5", "valid integer"),
    ("count", True, "valid integer"),
    ("count", 5.0, "valid integer"),
    ("count", None, "valid integer"),
    ("count", 0, "greater than or equal to 1"),
    ("count", 10, "less than or equal to 9"),
    ("rate", "0.5", "valid number"),
    ("rate", True, "valid number"),
    ("flag", 1, "valid boolean"),
    ("flag", "true", "valid boolean"),
    ("choice", "c", "'a' or 'b'"),
    ("choice", 1, "'a' or 'b'"),
    ("sizes", 3, "valid list"),
    ("sizes", "12", "valid list"),
    ("pair", [1, 2, 3], "at most 2 items"),
]


@pytest.mark.parametrize(("name", "value"), VALID)
def test_valid_values_have_no_errors(name, value):
    assert named(Plain)[name].validate(value) == []


@pytest.mark.parametrize(("name", "value", "reason"), INVALID)
def test_values_are_not_converted_to_another_type(name, value, reason):
    ((_, message),) = named(Plain)[name].validate(value)
    assert reason in message


def test_errors_inside_a_value_have_their_path():
    class Matrix:
        def __init__(self, *, rows: list[list[int]]) -> None:
            pass

    errors = named(Matrix)["rows"].validate([[1, "2"], [3], None])
    assert [path for path, _ in errors] == [(0, 1), (2,)]


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("count", {"type": "integer", "minimum": 1, "maximum": 9}),
        ("rate", {"type": "number"}),
        ("flag", {"type": "boolean"}),
        ("choice", {"type": "string", "enum": ["a", "b"]}),
        ("sizes", {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}),
    ],
)
def test_plain_parameters_have_a_json_schema(name, schema):
    assert named(Plain)[name].json_schema() == schema


def test_defaults_of_registered_components_are_valid():
    checked = 0
    for entry in default_registry().components():
        for parameter in parameters(entry.cls):
            if parameter.from_parent or parameter.slot:
                continue
            assert parameter.json_schema()
            assert parameter.required or parameter.validate(parameter.default) == []
            checked += 1
    assert checked > 20
