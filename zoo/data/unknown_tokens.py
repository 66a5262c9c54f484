"""Texts of a dataset that a tokenizer does not know."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from zoo.data.tokenizer import Tokenizer
from zoo.errors import DataError, ZooError, ZooWarning
from zoo.interfaces import Examples, Preprocessor

MAX_EXAMPLES = 100
MIN_SHARE = 0.1


def warn_unknown_tokens(examples: Examples, preprocessors: Mapping[str, Preprocessor]) -> None:
    """Warn of texts with many unknown tokens, such as lower case for a tokenizer of capitals.

    Some of the examples are read; those that cannot be used are reported where they are used.

    Args:
        preprocessors: by key of the examples.
    """
    texts = {
        key: (preprocessor, unknown)
        for key, preprocessor in preprocessors.items()
        if preprocessor.content == "text" and (unknown := _unknown_id(preprocessor)) is not None
    }
    if not texts:
        return
    found: dict[str, list[tuple[int, int]]] = {key: [] for key in texts}
    count = min(len(examples), MAX_EXAMPLES)
    for index in np.linspace(0, len(examples) - 1, count).astype(int).tolist():
        try:
            example = examples[index]
            for key, (preprocessor, unknown) in texts.items():
                if isinstance(value := example.get(key), str):
                    ids = preprocessor.encode(value)
                    found[key].append((int(np.count_nonzero(ids == unknown)), ids.size))
        except DataError:
            continue
    for key, counts in found.items():
        number, tokens = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
        if number > MIN_SHARE * tokens:
            warnings.warn(
                f"{number / tokens:.0%} of the tokens of '{key}' are unknown to its tokenizer (of "
                f"{len(counts)} examples): the model cannot tell them apart; check upper and lower "
                "case, or train a tokenizer on these texts",
                ZooWarning,
                stacklevel=2,
            )


def _unknown_id(preprocessor: Preprocessor) -> int | None:
    """Return the ID of the unknown token of a preprocessor's tokenizer, None without either."""
    stored = preprocessor.stored()
    if stored is None:
        return None
    try:
        return Tokenizer(stored).unknown_id
    except ZooError:  # a text of another library
        return None
