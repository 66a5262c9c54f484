"""Merging of documents, and overrides from the command line."""

from __future__ import annotations

from typing import Any

from zoo.errors import Place, Problem, SpecError, truncate
from zoo.spec.document import MAX_DEPTH, Document, KeyPath, document_from_data, read_option
from zoo.spec.fine_tuning import Start
from zoo.spec.training import ALTERNATIVES

OVERRIDE_EXAMPLE = "model.encoder.hidden=64"


def parse_override(
    text: str, base: Document, example: str = OVERRIDE_EXAMPLE, option: str = "--set"
) -> Document:
    """Parse ``--set a.b.c=value`` into a document whose places name the option."""
    key_path, equals, value = text.partition("=")
    keys = key_path.strip().split(".")
    label = truncate(f"{option} {text}", 100)
    if not equals or not all(keys) or len(keys) > MAX_DEPTH:
        message = f"should be KEY.KEY=VALUE, for example {example}"
        raise SpecError([Problem(message, place=Place(label))])
    read = read_option(value, label) if value.strip() else document_from_data(None, label)
    data: Any = read.data
    for key in reversed(keys):
        data = {key: data}
    prefix = tuple(keys)
    document = document_from_data(data, label)
    document.problems = [
        Problem(p.message, ".".join([*keys, p.path]), p.place) for p in read.problems
    ]
    for depth in range(1, len(keys) + 1):
        if depth == len(keys) or prefix[:depth] not in base.values:
            document.values[prefix[:depth]] = document.keys[prefix[:depth]] = Place(label)
    document.values.update({(*prefix, *inner): place for inner, place in read.values.items()})
    document.keys.update({(*prefix, *inner): place for inner, place in read.keys.items()})
    return document


def merge(base: Document, over: Document) -> Document:
    """Merge ``over`` into ``base``: mappings key by key, unless ``over`` names another type.

    A key of `ALTERNATIVES` replaces the others: ``train.steps`` of ``over`` removes
    ``train.epochs`` of ``base``.
    """
    values, keys = dict(base.values), dict(base.keys)

    def remove_places(key_path: KeyPath) -> None:
        for table in (values, keys):
            for stale in [t for t in table if t[: len(key_path)] == key_path]:
                del table[stale]

    def discard_places(old: Any, key_path: KeyPath) -> None:
        """Remove the places inside a value that was replaced."""
        if isinstance(old, (dict, list)):
            remove_places(key_path)
        if key_path not in over.values and over.values:
            values[key_path] = Place(over.file)

    def merge_values(old: Any, new: Any, key_path: KeyPath) -> Any:
        if not isinstance(new, dict):
            discard_places(old, key_path)
            return new
        if isinstance(old, str):
            name = Start.shorthand if key_path[-2:] == ("train", "start") else "type"
            old = {name: old}
            if key_path in values:
                values[*key_path, name] = values[key_path]
        if not isinstance(old, dict) or new.get("type", old.get("type")) != old.get("type"):
            discard_places(old, key_path)
            return new
        merged = dict(old)
        for replaced in _replaced_keys(key_path, new):
            if merged.pop(replaced, None) is not None:
                remove_places((*key_path, replaced))
        for key, value in new.items():
            merged[key] = merge_values(old[key], value, (*key_path, key)) if key in old else value
        return merged

    data = merge_values(base.data, over.data, ())
    return Document(
        data,
        over.file,
        values=values | over.values,
        keys=keys | over.keys,
        problems=[*base.problems, *over.problems],
        base=base.base,
    )


def _replaced_keys(key_path: KeyPath, new: dict[str, Any]) -> list[str]:
    """Return the keys of the base that a mapping at a path of a spec, or of a spec inside a recipe,
    replaces by an alternative."""
    path = key_path[1:] if key_path[:1] == ("spec",) else key_path
    keys = ALTERNATIVES.get(path, ())
    given = [key for key in keys if new.get(key) is not None]
    return [key for key in keys if key not in new] if given else []
