"""Blueprints: validation, building, resolving, and the origin of width conflicts."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import pytest
import spec_kit
from pydantic import Field
from torch import Tensor, nn

import zoo
from zoo import ZooError
from zoo.errors import SpecError
from zoo.plugin import Attention, Blueprint, FromParent, Scorer, WidthConflict
from zoo.registry.blueprint import record_build
from zoo.registry.component_registry import default_registry
from zoo.spec.spec import draft_spec, load_spec
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.dot import Dot
from zoo_recurrent.gru import GRU

SPEC = spec_kit.SPEC.replace("ALIGN", "soft")


class Faulty(Scorer):
    """Raises in its constructor."""

    name: ClassVar[str] = "faulty"

    def __init__(self, *, query_dim: FromParent[int], how: str = "value") -> None:
        super().__init__()
        if how == "value":
            raise ValueError("boom")
        if how == "long":
            raise RuntimeError("boom\n" + "a C++ stack trace\n" * 1_000)
        raise ZooError("a ZooError")

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        raise AssertionError

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        raise AssertionError


class Shaped(Additive):
    """Has a parameter that is a pair."""

    name: ClassVar[str] = "shaped"

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        key_dim: FromParent[int],
        pair: tuple[int, int] = (1, 2),
        hidden: Annotated[int, Field(ge=1)] = 3,
    ) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim, hidden=hidden)


class Leaf(nn.Module):
    def __init__(self, *, width: FromParent[int] = 7, depth: FromParent[int]) -> None:
        super().__init__()
        self.width, self.depth = width, depth


class Tree(nn.Module):
    def __init__(self, *, leaves: Sequence[Blueprint[Leaf]] = ()) -> None:
        super().__init__()
        self.leaves = nn.ModuleList(leaf.build(depth=i) for i, leaf in enumerate(leaves))


REGISTRY = default_registry().with_components([Faulty, Shaped], plugin="other")


def write(tmp_path, scorer: str, **changes: str):
    text = SPEC.replace("SCORER", scorer)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "spec.yaml"
    file.write_text(text)
    return file


def the_problem(file):
    with pytest.raises(SpecError) as caught:
        zoo.check(file, registry=REGISTRY)
    (problem,) = caught.value.problems
    return problem


def test_build_passes_values_of_the_parent():
    part = Blueprint.of(Additive, hidden=8).build(query_dim=4, key_dim=6)
    assert (part.W.in_features, part.U.in_features, part.W.out_features) == (4, 6, 8)


def test_build_returns_a_new_part_each_time():
    blueprint = Blueprint.of(Additive)
    assert blueprint.build(query_dim=4, key_dim=6) is not blueprint.build(query_dim=4, key_dim=6)


def test_build_ignores_values_that_are_not_declared():
    assert isinstance(Blueprint.of(Soft).build(query_dim=3, anything=object()), Soft)
    leaf = Blueprint.of(Leaf).build(depth=1, height=2)
    assert (leaf.width, leaf.depth) == (7, 1)
    assert Blueprint.of(Leaf).build(depth=1, width=2).width == 2


def test_missing_values_of_the_parent_are_reported():
    with pytest.raises(SpecError) as caught:
        Blueprint.of(Additive).build(query_dim=4, value_dim=3)
    assert str(caught.value) == (
        "'additive' requires key_dim from its parent, but the parent passes query_dim, value_dim"
    )
    with pytest.raises(
        SpecError, match="requires depth from its parent, but the parent passes nothing"
    ):
        Blueprint.of(Leaf).build()


def test_of_reports_all_problems_together():
    with pytest.raises(SpecError) as caught:
        Blueprint.of(GRU, hiden=3, layers="2", dropout=1.0)
    assert [p.message for p in caught.value.problems] == [
        (
            "GRU has no parameter 'hiden'; it has: hidden, layers, bidirectional, dropout, "
            "input_dropout, output_dropout, variant"
        ),
        "layers: Input should be a valid integer",
        "dropout: Input should be less than 1",
        "parameter 'hidden' of GRU is missing",
    ]


def test_of_rejects_values_of_the_parent():
    with pytest.raises(SpecError, match="no parameter 'query_dim'"):
        Blueprint.of(Additive, query_dim=4)


@pytest.mark.parametrize("value", ["additive", Additive, Blueprint.of(Soft), None])
def test_a_slot_takes_only_a_blueprint_of_its_kind(value):
    with pytest.raises(SpecError, match="scorer"):
        Blueprint.of(Attention, scorer=value, align=Blueprint.of(Soft))


def test_a_slot_for_several_parts_takes_a_list():
    with pytest.raises(SpecError, match=r"leaves: expected a list of Blueprint\[Leaf\], got Blue"):
        Blueprint.of(Tree, leaves=Blueprint.of(Leaf))


def test_of_converts_values_as_a_spec_does():
    assert Blueprint.of(Shaped, pair=[3, 4]).params == {"pair": (3, 4)}


def test_a_blueprint_of_the_wrong_kind_in_a_dict_is_rejected():
    data = load_spec("bahdanau-reversal").resolve()
    data["model"]["decoder"]["attention"]["scorer"] = Blueprint.of(Soft)
    (problem,) = draft_spec(data).problems
    assert problem.path == "model.decoder.attention.scorer"


def test_a_blueprint_in_a_dict_resolves_to_its_registered_name():
    data = load_spec("bahdanau-reversal").resolve()
    data["model"]["decoder"]["attention"]["scorer"] = Blueprint.of(Additive, hidden=5)
    resolved = load_spec(data).resolve()
    scorer = resolved["model"]["decoder"]["attention"]["scorer"]
    assert scorer == {"type": "bahdanau:additive", "hidden": 5, "project": True}
    assert load_spec(resolved).resolve() == resolved


def test_walk_visits_the_blueprints_in_slots():
    leaf = Blueprint.of(Leaf)
    tree = Blueprint.of(Tree, leaves=[leaf, leaf])
    assert list(tree.children()) == [leaf, leaf]
    assert list(tree.walk()) == [tree, leaf, leaf]
    assert [leaf.depth for leaf in tree.build().leaves] == [0, 1]
    attention = Blueprint.of(Attention, scorer=Blueprint.of(Dot), align=Blueprint.of(Soft))
    assert [b.label for b in attention.walk()] == ["Attention", "dot", "soft"]


def test_record_build_records_the_tree():
    attention = Blueprint.of(Attention, scorer=Blueprint.of(Dot), align=Blueprint.of(Soft), heads=2)
    with record_build() as root:
        built = attention.build(query_dim=4, key_dim=6)
    (node,) = root.children
    assert node.part is built
    assert node.from_parent == {"query_dim": 4, "key_dim": 6}
    assert [child.blueprint.label for child in node.children] == ["dot", "soft"]
    assert node.children[0].from_parent == {"query_dim": 2, "key_dim": 2}


def test_a_failed_build_is_not_recorded():
    with record_build() as root:
        with pytest.raises(SpecError):
            Blueprint.of(Dot).build(query_dim=4, key_dim=6)
        Blueprint.of(Dot).build(query_dim=4, key_dim=4)
    assert [node.from_parent for node in root.children] == [{"query_dim": 4, "key_dim": 4}]


@pytest.mark.parametrize(
    ("how", "message"),
    [("value", "could not be built: ValueError: boom"), ("zoo", "a ZooError")],
)
def test_the_error_of_a_child_has_its_place(tmp_path, how, message):
    problem = the_problem(write(tmp_path, f"{{type: faulty, how: {how}}}"))
    assert problem.path == "model.decoder.attention.scorer"
    assert (problem.place.line, problem.place.column) == (10, 25)
    assert problem.message == message


def test_only_the_first_line_of_an_error_is_shown(tmp_path):
    problem = the_problem(write(tmp_path, "{type: faulty, how: long}"))
    assert problem.message == "could not be built: RuntimeError: boom"


def test_the_original_error_is_the_cause():
    with pytest.raises(SpecError) as caught:
        Blueprint.of(Faulty, how="value").build(query_dim=3)
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value) == "'faulty' could not be built: ValueError: boom"


def test_a_width_conflict_has_both_places(tmp_path):
    file = write(tmp_path, "dot")
    problem = the_problem(file)
    assert problem.path == "model.decoder.attention.scorer"
    assert (problem.place.line, problem.place.column) == (10, 25)
    assert problem.message.endswith(
        f": query_dim is 16 (from model.decoder.hidden, {file}:9:13), "
        f"key_dim is 8 (from model.encoder, {file}:6:12)"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden: 16": "hidden: 16\n    readout: 8"},
        {"dim: 4": "dim: 8"},
        {"vocab: 16": "vocab: 8"},
        {"type: seq2seq": "type: seq2seq\n  bos: 8"},
        {"hidden: 8}": "hidden: 4, bidirectional: true}"},
    ],
    ids=[
        "a sibling key",
        "a sibling part",
        "its vocabulary",
        "a key of the model",
        "bidirectional",
    ],
)
def test_equal_values_elsewhere_do_not_hide_the_origin_of_a_width(tmp_path, changes):
    file = write(tmp_path, "dot", **changes)
    lines = file.read_text().splitlines()
    encoder = next(i for i, line in enumerate(lines, 1) if "encoder:" in line)
    hidden = next(i for i, line in enumerate(lines, 1) if line.startswith("    hidden:"))
    message = the_problem(file).message
    assert f"{file}:{encoder}:12" in message
    assert f"{file}:{hidden}:13" in message


def test_a_width_conflict_without_places_shows_the_widths():
    attention = Blueprint.of(Attention, scorer=Blueprint.of(Dot), align=Blueprint.of(Soft))
    with pytest.raises(SpecError, match="query_dim is 4, key_dim is 6"):
        attention.build(query_dim=4, key_dim=6)
    assert str(WidthConflict("a must be b", a=1, b=2)) == "a must be b: a is 1, b is 2"


def test_a_pair_is_resolved_to_a_list_and_read_back(tmp_path):
    resolved = load_spec(write(tmp_path, "shaped"), registry=REGISTRY).resolve()
    scorer = resolved["model"]["decoder"]["attention"]["scorer"]
    assert scorer == {"type": "other:shaped", "pair": [1, 2], "hidden": 3}
    assert load_spec(resolved, registry=REGISTRY).resolve() == resolved
