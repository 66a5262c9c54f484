"""Values of a spec in the tensor names of a map: ``layers.{n:0..$layers}``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from zoo.errors import ZooError
from zoo_exchange.mapping.expression import Expression
from zoo_exchange.mapping.pattern import count_words

VALUE = re.compile(r"\$([A-Za-z_]\w*)")
MAX_SIZE = 5_000_000
"""Maximum size of all names of a map, in characters."""
_WORD_SIZE = 16
"""Characters that take as much memory as a word of a list."""
_PLACEHOLDER_SIZE = 100
"""Characters that take as much time as a placeholder."""


class NameValues:
    """Replaces values in the names of one map, and limits the size of all names."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self.values = values
        self.texts: dict[str, str] = {}
        self.size = 0

    def replace(self, name: str) -> str:
        """Return the name with the values instead of their names."""
        replaced = VALUE.sub(self._text, name)
        placeholders = replaced.count("{")
        words = count_words(replaced)
        self.size += len(replaced) + _WORD_SIZE * words + _PLACEHOLDER_SIZE * placeholders
        if self.size > MAX_SIZE:
            raise ZooError("the names of the map have too many characters, placeholders or words")
        return replaced

    def _text(self, found: re.Match[str]) -> str:
        name = found[1]
        if name not in self.texts:
            self.texts[name] = str(Expression(name).value(self.values))
        self.size += len(self.texts[name])
        if self.size > MAX_SIZE:
            raise ZooError("the names of the map contain too many values")
        return self.texts[name]
