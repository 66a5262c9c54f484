"""A constructor's signature is a schema."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Optional

import pytest
import torch
from pydantic import Field
from torch import nn

from zoo.interfaces.signature import REQUIRED, Slot, parameters
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


def test_parameters_come_in_the_order_of_the_signature_with_their_defaults():
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


def test_what_the_parent_gives_is_marked_so():
    assert [name for name, p in named(Plain).items() if p.from_parent] == ["width"]
    assert [name for name, p in named(Additive).items() if p.from_parent] == [
        "query_dim",
        "key_dim",
    ]


def test_a_slot_is_a_blueprint_an_optional_one_or_a_sequence_of_them():
    assert {name: p.slot for name, p in named(Slotted).items()} == {
        "one": Slot(Scorer),
        "maybe": Slot(Alignment, optional=True),
        "perhaps": Slot(Alignment, optional=True),
        "many": Slot(Attention, many=True),
        "many_or_none": Slot(Attention, many=True, optional=True),
        "given": None,
        "number": None,
    }


def test_a_class_without_a_constructor_of_its_own_has_no_parameters():
    class Bare:
        pass

    class Module(nn.Module):
        pass

    assert parameters(Bare) == ()
    assert parameters(Module) == ()


def test_an_inherited_constructor_counts():
    class Child(Additive):
        pass

    assert [p.name for p in parameters(Child)] == ["query_dim", "key_dim", "hidden"]


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
        (collecting, r"parameter 'options' collects arguments \(\*args or \*\*kwargs\)"),
        (gathering, r"parameter 'items' collects arguments \(\*args or \*\*kwargs\)"),
        (untyped, "parameter 'width' has no type"),
        (typed_type, "parameter 'type' cannot be called 'type'"),
        (unresolved, "the types of Faulty's constructor do not resolve: .*Nowhere"),
        (of_tensors, "parameter 'weights'"),
        (of_modules, "parameter 'inner'"),
        (of_other_slots, "parameter 'parts'"),
    ],
)
def test_a_constructor_that_is_no_schema_is_refused_with_the_reason(constructor, reason):
    faulty = type("Faulty", (), {"__init__": constructor})
    with pytest.raises(TypeError, match=reason):
        parameters(faulty)


ACCEPTED = [
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
    ("pair", [3, 4]),  # a spec has no other way to write it
]
REFUSED = [
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


@pytest.mark.parametrize(("name", "value"), ACCEPTED)
def test_values_of_the_right_type_pass(name, value):
    assert named(Plain)[name].faults(value) == []


@pytest.mark.parametrize(("name", "value", "why"), REFUSED)
def test_values_are_never_bent_to_another_type(name, value, why):
    ((_, message),) = named(Plain)[name].faults(value)
    assert why in message


def test_each_fault_inside_a_value_is_told_with_its_path():
    class Matrix:
        def __init__(self, *, rows: list[list[int]]) -> None:
            pass

    faults = named(Matrix)["rows"].faults([[1, "2"], [3], None])
    assert [path for path, _ in faults] == [(0, 1), (2,)]


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


def test_every_plain_parameter_of_every_component_has_a_json_schema_its_default_obeys():
    checked = 0
    for entry in default_registry().components():
        for parameter in parameters(entry.cls):
            if parameter.from_parent or parameter.slot:
                continue
            assert parameter.json_schema()
            assert parameter.required or parameter.validate(parameter.default) == []
            checked += 1
    assert checked > 20
