"""Texts of a dataset that a tokenizer does not know."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zoo.data.tokenizer import Tokenizer
from zoo.errors import DataError, ZooError, ZooWarning, truncate
from zoo.interfaces import Examples, Model, Preprocessor

MAX_EXAMPLES = 100
MAX_CHARACTERS = 100_000
"""Length of the part of a text whose unknown symbols are named."""
_MAX_SHOWN = 5


@dataclass
class _Count:
    """The tokens of a key: their number, and the unknown ones."""

    tokenizer: Tokenizer
    lowercase: bool
    examples: int = 0
    tokens: int = 0
    unknown: int = 0
    symbols: Counter[str] = field(default_factory=Counter)

    def add(self, text: str, ids: Any) -> None:
        self.examples += 1
        self.tokens += ids.size
        unknown = int(np.count_nonzero(ids == self.tokenizer.unknown_id))
        self.unknown += unknown
        if unknown:
            part = text[:MAX_CHARACTERS]
            self.symbols += self.tokenizer.count_unknown(part.lower() if self.lowercase else part)

    def describe(self, key: str, data: str) -> str:
        shown = self.symbols.most_common(_MAX_SHOWN)
        names = ", ".join(f"{truncate(repr(name), 40)} ({count:,})" for name, count in shown)
        more = len(self.symbols) - len(shown)
        names += f" and {more:,} others" if more else ""
        share = f"{100 * self.unknown / self.tokens:.3g}%"
        examples = f"{self.examples:,} example{'s' if self.examples > 1 else ''}"
        return (
            f"{share} of the tokens of '{key}' are unknown to its tokenizer ({self.unknown:,} of "
            f"{self.tokens:,}, in {examples} of the {data} data){': ' if names else ''}{names}; "
            "the model cannot tell them apart; check upper and lower case, or train a tokenizer on "
            "these texts (zoo tokenizer train --for SPEC)"
        )


def warn_unknown_tokens(
    examples: Examples,
    model: Model,
    preprocessors: Mapping[str, Preprocessor],
    *,
    data: str = "training",
) -> None:
    """Warn of texts with unknown tokens, such as lower case for a tokenizer of capitals, or line
    breaks for a tokenizer of the characters in lines.

    Some of the examples are read; those that cannot be used are reported where they are used.

    Args:
        preprocessors: by key of the examples.
        data: which data it is, for the warning.
    """
    section = (model.spec or {}).get("preprocessing") or {}
    lowercase = {
        key
        for key, params in section.items()
        if isinstance(params, Mapping) and params.get("lowercase")
    }
    counts = {
        key: _Count(tokenizer, key in lowercase)
        for key, preprocessor in preprocessors.items()
        if preprocessor.content == "text" and (tokenizer := _tokenizer(preprocessor)) is not None
    }
    if not counts:
        return
    number = min(len(examples), MAX_EXAMPLES)
    for index in np.linspace(0, len(examples) - 1, number).astype(int).tolist():
        try:
            example = examples[index]
            for key, count in counts.items():
                if isinstance(value := example.get(key), str):
                    count.add(value, preprocessors[key].encode(value))
        except DataError:
            continue
    for key, count in counts.items():
        if count.unknown:
            warnings.warn(count.describe(key, data), ZooWarning, stacklevel=2)


def _tokenizer(preprocessor: Preprocessor) -> Tokenizer | None:
    """Return the tokenizer of a preprocessor, if it has one with an unknown token."""
    stored = preprocessor.stored()
    if stored is None:
        return None
    try:
        tokenizer = Tokenizer(stored, literal=True)
    except ZooError:  # a text of another library
        return None
    return None if tokenizer.unknown_id is None else tokenizer
