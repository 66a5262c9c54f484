"""Filters of a spec for tokens that a generation config forces or suppresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zoo_huggingface.generation_keys import generation_error, get_generation_value


@dataclass(frozen=True)
class TokenIds:
    """The token IDs in a generation config.

    Args:
        generation: the generation config.
        banned: a token that is never generated, for which no filter is needed.
        vocab: the size of the vocabulary; transformers ignores suppressed tokens from there on.
    """

    generation: Mapping[str, Any]
    banned: int | None
    vocab: int

    def suppressed(self, key: str) -> list[int]:
        """Return the tokens under a key that the model could generate."""
        tokens = self.generation.get(key) or []
        if not isinstance(tokens, list):
            raise generation_error(key, tokens, "it should be a list of token IDs")
        return [token for token in tokens if self._is_generated(key, token)]

    def bad_words(self, eos: list[int]) -> list[int]:
        """Return the tokens of words of one token; transformers ignores end tokens."""
        words = bad_words(self.generation)
        return [t for t in words if self._is_generated("bad_words_ids", t) and t not in eos]

    def first(self) -> int | None:
        """Return the token that is forced as first."""
        key = "forced_bos_token_id"
        token = get_generation_value(self.generation, key, int, None)
        return None if token is None else _validate(key, token)

    def last(self, eos: list[int]) -> int | None:
        """Return the end token that is forced at the maximum length."""
        key = "forced_eos_token_id"
        token = self.generation.get(key)
        token = token[0] if isinstance(token, list) and len(token) == 1 else token
        if token is None or token in eos:
            return token
        raise generation_error(key, token, f"only one of the end tokens {eos} is supported")

    def _is_generated(self, key: str, token: Any) -> bool:
        return _validate(key, token) != self.banned and token < self.vocab


def bad_words(generation: Mapping[str, Any]) -> list[Any]:
    """Return the tokens of bad words of one token; raise ZooError for longer words."""
    key = "bad_words_ids"
    words = generation.get(key) or []
    valid = isinstance(words, list) and all(isinstance(w, list) and len(w) == 1 for w in words)
    if not valid:
        raise generation_error(key, words, "only words of one token are supported")
    return [token for (token,) in words]


def generates_padding(generation: Mapping[str, Any], *, pad: int | None, eos: list[int]) -> bool:
    """Return whether padding is generated as any other token, before the end token."""
    if pad is None or pad in eos:
        return False
    return pad not in (*bad_words(generation), *(generation.get("suppress_tokens") or ()))


def token_filters(
    tokens: TokenIds, *, eos: list[int], prompt: int | None
) -> Iterator[dict[str, Any]]:
    """Yield the filters, in the order of transformers; see `generation_spec`."""
    banned = tokens.bad_words(eos)
    if banned:
        yield _suppressed(banned)
    min_length = _min_length(tokens.generation, prompt)
    if min_length > 1 and eos:
        yield _suppressed(eos, stop=min_length)
    first = tokens.first()
    if first is not None:
        yield {"type": "forced-tokens", "tokens": [first]}
    end = tokens.last(eos)
    if end is not None:
        yield {"type": "forced-end", "token": end}
    suppressed = tokens.suppressed("suppress_tokens")
    if suppressed:
        yield _suppressed(suppressed, **({"start": prompt} if prompt and prompt > 1 else {}))
    begin = tokens.suppressed("begin_suppress_tokens")
    if begin:
        if prompt is None:
            raise generation_error(
                "begin_suppress_tokens", begin, "it is supported only for models with a source"
            )
        start = prompt + (first is not None)
        yield _suppressed(begin, start=start, stop=start + 1)


def _suppressed(tokens: list[int], **span: int) -> dict[str, Any]:
    return {"type": "suppressed-tokens", "tokens": tokens, **span}


def _min_length(generation: Mapping[str, Any], prompt: int | None) -> int:
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


def _validate(key: str, token: Any) -> int:
    if type(token) is not int or token < 0:
        raise generation_error(key, token, "it should be a token ID")
    return token
