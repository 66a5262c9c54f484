"""Filters of a spec for tokens that a generation config forces or suppresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zoo_huggingface.generation_keys import generation_error, get_generation_value

Generation = Mapping[str, Any]


def token_filters(
    generation: Generation, *, pad: int | None, eos: list[int], prompt: int | None
) -> Iterator[dict[str, Any]]:
    """Yield the filters, in the order of transformers; see `generation_spec`."""
    banned = _bad_words(generation, pad)
    if banned:
        yield _suppressed(banned)
    min_length = _min_length(generation, prompt)
    if min_length > 1:
        yield _suppressed(eos, stop=min_length)
    first = get_generation_value(generation, "forced_bos_token_id", int, None)
    if first is not None:
        yield {"type": "forced-tokens", "tokens": [_token("forced_bos_token_id", first)]}
    suppressed = _tokens(generation, "suppress_tokens", pad)
    if suppressed:
        yield _suppressed(suppressed, **({"start": prompt} if prompt and prompt > 1 else {}))
    begin = _tokens(generation, "begin_suppress_tokens", pad)
    if begin:
        if prompt is None:
            raise generation_error(
                "begin_suppress_tokens",
                generation["begin_suppress_tokens"],
                "it is supported only for models with a source",
            )
        start = prompt + (first is not None)
        yield _suppressed(begin, start=start, stop=start + 1)


def _suppressed(tokens: list[int], **span: int) -> dict[str, Any]:
    return {"type": "suppressed-tokens", "tokens": tokens, **span}


def _min_length(generation: Generation, prompt: int | None) -> int:
    """Return the number of tokens, with the prompt, before which no end token is generated."""
    length = int(get_generation_value(generation, "min_length", int, 0))
    new = get_generation_value(generation, "min_new_tokens", int, 0)
    if not new:
        return length
    if prompt is None:
        raise generation_error(
            "min_new_tokens", new, "it is supported only for models with a source"
        )
    return int(prompt + new)


def _bad_words(generation: Generation, pad: int | None) -> list[int]:
    """Return the tokens of words of one token; the zoo never generates the padding."""
    words = generation.get("bad_words_ids") or []
    if not isinstance(words, list) or not all(isinstance(w, list) and len(w) == 1 for w in words):
        raise generation_error("bad_words_ids", words, "only words of one token are supported")
    return [token for (token,) in words if _token("bad_words_ids", token) != pad]


def _tokens(generation: Generation, key: str, pad: int | None) -> list[int]:
    tokens = generation.get(key) or []
    if not isinstance(tokens, list):
        raise generation_error(key, tokens, "it should be a list of token IDs")
    return [token for token in tokens if _token(key, token) != pad]


def _token(key: str, token: Any) -> int:
    if type(token) is not int or token < 0:
        raise generation_error(key, token, "it should be a token ID")
    return token
