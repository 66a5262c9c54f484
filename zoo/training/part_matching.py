"""Which tensors of a model are taken from another one, by parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor, nn

from zoo.errors import ZooError, suggest
from zoo.interfaces import Component

_MAX_SHOWN = 3
Shape = tuple[int, ...]
Growth = Collection[tuple[int, int]]
"""Pairs of vocabulary sizes: those of the base, and larger ones of the model."""


class Fresh(NamedTuple):
    """A part that is not taken from the base: its path, its number of tensors, and the reason."""

    path: str
    tensors: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path} ({self.tensors} tensors): {self.reason}"


@dataclass
class Matching:
    """The result of a comparison.

    Attributes:
        parts: the parts of the base that are taken, by those of the model.
        taken: names of tensors in the base, by those in the model.
        grown: number of rows that are taken of a tensor with more rows.
        fresh: parts that are initialised.
        unused: parts of the base that are not taken.
        tensors: number of tensors that are taken, those that modules share once.
    """

    parts: dict[str, str] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    grown: dict[str, int] = field(default_factory=dict)
    fresh: list[Fresh] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    tensors: int = 0


def match_parts(
    model: nn.Module, base: nn.Module, parts: Mapping[str, str] | None, growth: Growth
) -> Matching:
    """Compare the tensors of two models by path and shape.

    Args:
        parts: paths of parts in the base, by path in the model. Default: each part of the model.
            A component must then be as in the base, or missing there; other modules, such as an
            output layer, start fresh if they differ.
        growth: tables of the model may have these numbers of rows more than those of the base.

    Raises:
        ZooError: if a part differs, or no component is taken.
    """
    ours, theirs = tensor_names(model), tensor_names(base)
    matching = Matching()
    problems: list[str] = []
    reasons = {}
    for path, other in (parts or {name: name for name in _top_level(ours)}).items():
        own, found = _below(ours, path), _below(theirs, other)
        differences = list(_differences(own, found, growth))
        if parts is not None and (not own or not found):
            problems.append(_missing_part(path, other, ours, theirs, has_own=bool(own)))
        elif not found:
            reasons[path] = "not in the base"
        elif not differences:
            _take(matching, path, other, own, found)
        elif parts is not None or _is_component(model, path):
            problems.append(f"'{path}' differs from '{other}' of the base: {_shorten(differences)}")
        else:
            reasons[path] = _shorten(differences)
    if problems:
        advice = "" if parts else "; name the parts to take in train.start.parts"
        raise ZooError("; ".join(problems) + advice)
    if parts is None and not any(_is_component(model, name) for name in matching.parts):
        raise ZooError(
            f"no part of the model is in the base: the model has {', '.join(_top_level(ours))}, "
            f"the base {', '.join(_top_level(theirs))}; name the parts to take in train.start.parts"
        )
    default = "not named in train.start.parts"
    for path in _top_level(ours):
        count = _count_fresh(ours, path, matching)
        if count:
            matching.fresh.append(Fresh(path, count, reasons.get(path, default)))
    used = {id(theirs[name]) for name in matching.taken.values()}
    matching.unused = [
        name
        for name in _top_level(theirs)
        if not any(id(theirs[tensor]) in used for tensor in _paths_below(theirs, name))
    ]
    matching.tensors = _count_taken(matching, ours, theirs)
    return matching


def _is_component(model: nn.Module, name: str) -> bool:
    return isinstance(getattr(model, name, None), Component)


def tensor_names(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors by name; those that modules share by all their names."""
    return model.state_dict(keep_vars=True)


def _top_level(tensors: Mapping[str, Tensor]) -> list[str]:
    return list(dict.fromkeys(name.partition(".")[0] for name in tensors))


def _paths_below(tensors: Mapping[str, Tensor], path: str) -> list[str]:
    return [name for name in tensors if f"{name}.".startswith(f"{path}.")]


def _below(tensors: Mapping[str, Tensor], path: str) -> dict[str, Tensor]:
    """Return the tensors of a part, by name inside it."""
    return {name[len(path) :]: tensors[name] for name in _paths_below(tensors, path)}


def _differences(
    own: Mapping[str, Tensor], found: Mapping[str, Tensor], growth: Growth
) -> Iterator[str]:
    for name, tensor in own.items():
        label = name.lstrip(".") or "the tensor"
        if name not in found:
            yield f"{label} {list(tensor.shape)} is not in the base"
        elif not _fits(tuple(found[name].shape), tuple(tensor.shape), growth):
            yield f"{label} is {list(found[name].shape)} in the base, not {list(tensor.shape)}"
        elif found[name].is_floating_point() != tensor.is_floating_point():
            yield f"{label} is {found[name].dtype} in the base, not {tensor.dtype}"
    for name, tensor in found.items():
        if name not in own:
            yield f"{name.lstrip('.')} {list(tensor.shape)} is only in the base"


def _fits(found: Shape, expected: Shape, growth: Growth) -> bool:
    if found == expected:
        return True
    is_longer = bool(found) and found[1:] == expected[1:] and len(found) == len(expected)
    return is_longer and (found[0], expected[0]) in growth


def _take(
    matching: Matching,
    path: str,
    other: str,
    own: Mapping[str, Tensor],
    found: Mapping[str, Tensor],
) -> None:
    matching.parts[path] = other
    for name, tensor in own.items():
        matching.taken[f"{path}{name}"] = f"{other}{name}"
        if found[name].shape != tensor.shape:
            matching.grown[f"{path}{name}"] = found[name].shape[0]


def _count_taken(
    matching: Matching, ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]
) -> int:
    """Return the number of tensors that are taken.

    Raises:
        ZooError: if one that modules share would be taken from two different ones.
    """
    sources: dict[int, str] = {}
    for name, other in matching.taken.items():
        first = sources.setdefault(id(ours[name]), other)
        if theirs[first] is not theirs[other]:
            raise ZooError(
                f"'{name}' is shared by several modules, but '{first}' and '{other}' of the base "
                "are different tensors"
            )
    return len(sources)


def _count_fresh(ours: Mapping[str, Tensor], path: str, matching: Matching) -> int:
    """Return how many tensors of a part are not taken, under any of their names."""
    taken = {id(ours[name]) for name in matching.taken}
    return len({id(ours[name]) for name in _paths_below(ours, path)} - taken)


def _missing_part(
    path: str,
    other: str,
    ours: Mapping[str, Tensor],
    theirs: Mapping[str, Tensor],
    *,
    has_own: bool,
) -> str:
    if not has_own:
        return f"the model has no part '{path}' with weights{suggest(path, _top_level(ours))}"
    return f"the base has no part '{other}' with weights{suggest(other, _top_level(theirs))}"


def _shorten(differences: list[str]) -> str:
    more = len(differences) - _MAX_SHOWN
    return ", ".join(differences[:_MAX_SHOWN]) + (f", and {more} more" if more > 0 else "")
