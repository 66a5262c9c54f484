"""Filters for the first tokens of Whisper: language, task, no timestamps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.generation_keys import generation_error

_USED_KEYS = (
    *("forced_decoder_ids", "lang_to_id", "language", "no_timestamps_token_id"),
    *("return_timestamps", "task", "task_to_id"),
)
_IGNORED_KEYS = ignored_keys(
    {
        "only timestamps use it": "alignment_heads max_initial_timestamp_index median_filter_width",
        "only audio of several parts uses it": "prev_sot_token_id",
        "the tokens of languages are used": "is_multilingual",
    }
)

Generation = Mapping[str, Any]


def whisper_filters(generation: Generation) -> tuple[list[dict[str, Any]], dict[str, Any], int]:
    """Return the filters of the first tokens, the other keys, and the number of tokens they fill.

    Without a language, the model selects one of the languages, and the tokens after it are forced.
    """
    if generation.get("return_timestamps"):
        raise generation_error("return_timestamps", True, "timestamps are not supported")
    tokens = _first_tokens(generation)
    filters: list[dict[str, Any]] = []
    if tokens and tokens[0] is None:
        languages = sorted(_ids(generation, "lang_to_id").values())
        filters.append({"type": "allowed-tokens", "tokens": languages, "stop": 2})
        if tokens[1:]:
            filters.append({"type": "forced-tokens", "tokens": tokens[1:], "start": 2})
    elif tokens:
        filters.append({"type": "forced-tokens", "tokens": tokens})
    known = {*_USED_KEYS, *_IGNORED_KEYS}
    others = {key: value for key, value in generation.items() if key not in known}
    return filters, others, 1 + len(tokens)


def _first_tokens(generation: Generation) -> list[int | None]:
    """Return the tokens after the start token; None for a language that is not known."""
    language, task = generation.get("language"), generation.get("task")
    tasks = _ids(generation, "task_to_id")
    tokens = [] if language is not None or task is not None else _forced(generation)
    if language is not None:
        tokens.append(_lookup(generation, "language", f"<|{language}|>", "lang_to_id", language))
    elif not tokens and _ids(generation, "lang_to_id"):
        tokens.append(None)
    if task is not None:
        tokens.append(_lookup(generation, "task", task, "task_to_id", task))
    elif language is not None and "transcribe" in tasks:
        tokens.append(tasks["transcribe"])
    last = generation.get("no_timestamps_token_id")
    if last is not None and tokens[-1:] != [last]:
        tokens.append(_token("no_timestamps_token_id", last))
    if None in tokens and not _ids(generation, "lang_to_id"):
        raise generation_error("lang_to_id", None, "it should have the tokens of languages")
    return tokens


def _forced(generation: Generation) -> list[int | None]:
    pairs = generation.get("forced_decoder_ids") or []
    valid = isinstance(pairs, list) and all(isinstance(p, list) and len(p) == 2 for p in pairs)
    if not valid or [p[0] for p in pairs] != list(range(1, len(pairs) + 1)):
        raise generation_error(
            "forced_decoder_ids", pairs, "it should be a list of pairs [1, ID], [2, ID], ..."
        )
    first = [None if pair[1] is None else _token("forced_decoder_ids", pair[1]) for pair in pairs]
    if None in first[1:]:
        raise generation_error("forced_decoder_ids", pairs, "only the language may be null")
    return first


def _lookup(generation: Generation, key: str, name: str, table: str, value: Any) -> int:
    ids = _ids(generation, table)
    found = ids.get(name, ids.get(str(value)))
    if found is None:
        raise generation_error(key, value, f"it is not in '{table}'")
    return found


def _ids(generation: Generation, key: str) -> dict[str, int]:
    ids = generation.get(key) or {}
    if not isinstance(ids, dict):
        raise generation_error(key, ids, "it should be a mapping of names to token IDs")
    return {str(name): _token(key, token) for name, token in ids.items()}


def _token(key: str, token: Any) -> int:
    if type(token) is not int or token < 0:
        raise generation_error(key, token, "it should be a token ID")
    return token
