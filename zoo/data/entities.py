"""Entities in sequences of tags, such as B-PER I-PER O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zoo.errors import ZooError

OUTSIDE = "O"
PREFIXES = "BIES"


class Entity(NamedTuple):
    """An entity: its type, its first position, and the position after its last."""

    label: str
    start: int
    end: int


def are_entity_tags(tags: Iterable[str]) -> bool:
    """Return whether all tags are O or a type with a prefix, and one of them begins an entity.

    Integers, the classes of a model that have no names, are not counted.
    """
    found = {tag for tag in tags if not _is_outside(tag)}
    return bool(found) and all(_split(tag)[1] for tag in found)


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """Return the entities in the tags of a text, as conlleval and seqeval find them.

    An entity begins with B, S, or any tag after O or of another type; it ends before O, B, S or
    another type, and after E or S. An integer, a class of a model that has no name, is as O.

    Raises:
        ZooError: if a tag is neither O nor a type with the prefix B-, I-, E- or S-.
    """
    entities: list[Entity] = []
    start, label = 0, ""
    for position, tag in enumerate([*tags, OUTSIDE]):
        prefix, kind = (OUTSIDE, "") if _is_outside(tag) else _split(tag)
        if prefix != OUTSIDE and not kind:
            raise ZooError(f"'{tag}' is not the tag of an entity; expected O, or B-PER and I-PER")
        if label and (prefix in "OBS" or kind != label):
            entities.append(Entity(label, start, position))
            label = ""
        if kind and not label:
            start, label = position, kind
        if label and prefix in "ES":
            entities.append(Entity(label, start, position + 1))
            label = ""
    return entities


def _is_outside(tag: str) -> bool:
    return tag == OUTSIDE or tag.isdecimal()


def _split(tag: str) -> tuple[str, str]:
    """Return the prefix and the type of a tag; an empty type if it has no prefix."""
    prefix, hyphen, kind = tag.partition("-")
    return (prefix, kind) if hyphen and prefix in tuple(PREFIXES) else (prefix, "")
