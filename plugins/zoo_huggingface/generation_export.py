"""The generation config of an export: keys of transformers for a sampler and filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zoo_huggingface.generation import SEARCH_KEYS

_CONDITIONS = {
    "top-k": ("top_k", "k"),
    "top-p": ("top_p", "p"),
    "min-p": ("min_p", "p"),
    "typical": ("typical_p", "mass"),
}
"""Keys and parameters of conditions of sampling."""
_OF_TOKENS = ("forced-tokens", "suppressed-tokens", "forced-end")

Part = Mapping[str, Any]


def export_generation(
    generation: Mapping[str, Any], spec: Mapping[str, Any], *, eos: list[int]
) -> dict[str, Any]:
    """Return a generation config with the sampler and the filters of a resolved spec.

    Filters and samplers that transformers does not have are left out.

    Args:
        generation: the imported one, whose other keys are kept.
        spec: the resolved spec.
        eos: the end tokens.
    """
    kept = {key: value for key, value in generation.items() if key not in SEARCH_KEYS}
    filters = spec.get("filters") or []
    return kept | _sampler_keys(spec["sampler"]) | _filter_keys(filters, eos)


def _type(part: Part) -> str:
    return str(part["type"]).rpartition(":")[2]


def _sampler_keys(sampler: Part) -> dict[str, Any]:
    name = _type(sampler)
    if name == "beam":
        count = sampler["n_best"]
        return {
            "do_sample": False,
            "num_beams": sampler["width"],
            "length_penalty": sampler["length_penalty"],
            "early_stopping": sampler["early_stopping"],
            **({} if count is None else {"num_return_sequences": count}),
        }
    parts: Sequence[Part] = sampler["samplers"] if name == "combined" else [sampler]
    if not all(_type(part) in ("temperature", *_CONDITIONS) for part in parts):
        return {"do_sample": False}
    keys = {"do_sample": True, "temperature": parts[0]["temperature"], "top_k": 0}
    for part in parts:
        if _type(part) in _CONDITIONS:
            key, param = _CONDITIONS[_type(part)]
            keys[key] = part[param]
    return keys


def _filter_keys(filters: Sequence[Part], eos: list[int]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for index, part in enumerate(filters):
        name = _type(part)
        if name == "repetition-penalty":
            keys["repetition_penalty"] = part["penalty"]
        elif name == "no-repeat-ngram":
            keys["no_repeat_ngram_size"] = part["n"]
        elif name == "forced-end":
            keys["forced_eos_token_id"] = part["token"]
        elif name == "forced-tokens" and part["start"] == 1 and len(part["tokens"]) == 1:
            keys["forced_bos_token_id"] = part["tokens"][0]
        elif name == "suppressed-tokens":
            is_first = not any(_type(each) in _OF_TOKENS for each in filters[:index])
            keys |= _suppressed_keys(part, eos, is_first)
    return keys


def _suppressed_keys(part: Part, eos: list[int], is_first: bool) -> dict[str, Any]:
    """Return the keys of suppressed tokens; bad words are the first filter of tokens."""
    tokens, start, stop = part["tokens"], part["start"], part["stop"]
    if stop is not None and start == 1 and sorted(tokens) == sorted(eos):
        return {"min_length": stop}
    if stop is not None:
        return {"begin_suppress_tokens": tokens}
    if is_first and start == 1 and not set(tokens) & set(eos):
        return {"bad_words_ids": [[token] for token in tokens]}
    return {"suppress_tokens": tokens}
