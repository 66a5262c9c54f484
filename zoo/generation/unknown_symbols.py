"""Symbols of input texts that the tokenizer of a model does not know."""

from __future__ import annotations

from collections.abc import Iterable

from zoo.errors import truncate
from zoo.generation.text_inputs import get_tokenizer
from zoo.interfaces import Model

_MAX_SHOWN = 10


def takes_text(model: Model) -> bool:
    """Return whether the inputs of a model are texts."""
    side = "target" if model.generation_input == "prompt" else "source"
    return get_tokenizer(model, side) is not None


def describe_unknown(model: Model, texts: Iterable[str], *, is_output: bool = False) -> str | None:
    """Return a sentence that names the symbols or words which the model reads as unknown; None if
    it knows all of them, or does not take texts.

    Args:
        is_output: whether the texts are outputs that the model reads, not its inputs.
    """
    side = "target" if is_output or model.generation_input == "prompt" else "source"
    tokenizer = get_tokenizer(model, side)
    if tokenizer is None:
        return None
    preprocessing = ((model.spec or {}).get("preprocessing") or {}).get(side) or {}
    lowercase = preprocessing.get("lowercase", False)
    found = tokenizer.unknown(text.lower() if lowercase else text for text in texts)
    if not found:
        return None
    names = ", ".join(repr(truncate(name, 40)) for name in found[:_MAX_SHOWN])
    more = f" and {len(found) - _MAX_SHOWN} more" if len(found) > _MAX_SHOWN else ""
    effect = "which are unknown tokens of the output" if is_output else "so its output may be wrong"
    return f"the model does not know {names}{more}, {effect}"
