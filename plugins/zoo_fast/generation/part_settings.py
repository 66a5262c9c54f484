"""The settings of the parts of a module, read at each call of a captured graph.

A graph depends on the numbers, names and functions among the attributes of the parts. Most parts
have the same attributes as at the last call, so their names are kept and only values are read.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Hashable, Sequence
from itertools import chain, compress
from operator import itemgetter
from typing import Any, NamedTuple

from torch import nn

from zoo.acceleration import plain_class
from zoo.attention.heads import Linear

Attributes = dict[str, Any]

_TYPES = {int, float, bool, str, type(None), types.BuiltinFunctionType, types.FunctionType}
"""Types of the attributes of a part on which its computation depends."""
_WITHOUT_SETTINGS = {Linear, nn.Linear, nn.Dropout, nn.Identity, nn.ModuleList}
"""Classes whose computation in evaluation mode depends on their weights and parts only."""
_OF_TORCH = frozenset(nn.Module().__dict__)
"""The attributes that each module has."""


class _Reader(NamedTuple):
    """Reads the attributes of the parts of a module.

    Attributes:
        form: the parts, and the number of attributes of each; other names are a KeyError then.
        selected: whether each part has attributes to read.
        functions: return those of each selected part.
    """

    form: Hashable
    selected: list[bool]
    functions: Sequence[Callable[[Attributes], tuple[Any, ...]]]

    def read(self, attributes: Sequence[Attributes]) -> list[tuple[Any, ...]]:
        chosen = compress(attributes, self.selected)
        return [read(own) for read, own in zip(self.functions, chosen, strict=True)]


_READERS: weakref.WeakKeyDictionary[nn.Module, _Reader] = weakref.WeakKeyDictionary()


def read_settings(
    module: nn.Module, parts: Sequence[nn.Module], attributes: Sequence[Attributes]
) -> Hashable:
    """Return the settings of a module, given all its parts and the attributes of each."""
    form = tuple(map(id, parts)), tuple(map(len, attributes))
    reader = _READERS.get(module)
    try:
        if reader is None or reader.form != form:
            raise KeyError("the parts have changed")
        values = reader.read(attributes)
    except KeyError:
        reader = _READERS[module] = _make_reader(form, parts, attributes)
        values = reader.read(attributes)
    return tuple(
        [
            # A function can be a closure that contains the module.
            weakref.ref(value) if type(value) is types.FunctionType else value
            for value in chain.from_iterable(values)
            if type(value) in _TYPES
        ]
    )


def _make_reader(
    form: Hashable, parts: Sequence[nn.Module], attributes: Sequence[Attributes]
) -> _Reader:
    names = [
        [] if plain_class(part) in _WITHOUT_SETTINGS else sorted(own.keys() - _OF_TORCH)
        for part, own in zip(parts, attributes, strict=True)
    ]
    # Of two names at least, for which it returns a tuple.
    functions = [itemgetter(each[0], *each) for each in names if each]
    return _Reader(form, list(map(bool, names)), functions)
