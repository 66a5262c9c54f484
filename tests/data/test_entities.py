import random
from itertools import pairwise, product

import pytest

from zoo import ZooError
from zoo.data.entities import are_entity_tags, find_entities


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-A I-A O", [("A", 0, 2)]),
        ("B-A B-A I-A", [("A", 0, 1), ("A", 1, 3)]),
        ("O I-A I-B", [("A", 1, 2), ("B", 2, 3)]),
        ("B-A I-B O", [("A", 0, 1), ("B", 1, 2)]),
        ("S-A B-B E-B I-B", [("A", 0, 1), ("B", 1, 3), ("B", 3, 4)]),
        ("E-A E-A", [("A", 0, 1), ("A", 1, 2)]),
        ("B-x-y O B-x-y", [("x-y", 0, 1), ("x-y", 2, 3)]),
        ("O O", []),
    ],
)
def test_entities_are_those_of_conlleval(tags, expected):
    assert find_entities(tags.split()) == expected


def reference(tags):
    """The rules of conlleval.pl: whether a chunk ends before a tag, and whether one starts."""
    pairs = [tag.split("-") if "-" in tag else ["O", ""] for tag in ["O", *tags, "O"]]
    chunks, begin = [], 0
    for position, ((prev, prev_type), (tag, type_)) in enumerate(pairwise(pairs)):
        ends = (prev, tag) in [*product("BI", "BSO"), *product("ES", "BIESO")]
        ends = ends or (prev not in "O" and prev_type != type_)
        starts = tag in ("B", "S") or (prev in "ESO" and tag in ("E", "I"))
        starts = starts or (tag not in "O" and prev_type != type_)
        if ends:
            chunks.append((prev_type, begin, position))
        if starts:
            begin = position
    return chunks


def test_matches_the_rules_of_conlleval():
    rng = random.Random(0)
    kinds = ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in "XY")]
    for _ in range(500):
        tags = rng.choices(kinds, k=6)
        assert find_entities(tags) == reference(tags), tags


def test_other_labels():
    assert are_entity_tags(["O", "B-A"])
    assert not are_entity_tags(["O"])
    assert not are_entity_tags(["O", "NOUN"])
    with pytest.raises(ZooError, match="'NOUN' is not the tag of an entity"):
        find_entities(["NOUN"])


def test_classes_without_names_are_outside():
    assert are_entity_tags(["O", "B-A", "4"])
    assert not are_entity_tags(["0", "4"])
    assert find_entities(["B-A", "4", "I-A"]) == [("A", 0, 1), ("A", 2, 3)]
