"""Sampler and filters of a spec from the generation config of transformers."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo import ZooError, ZooWarning
from zoo_huggingface.config_fields import get_path, read_json
from zoo_huggingface.generation_keys import (
    GENERATION_FILE,
    IGNORED_KEYS,
    LIMITS,
    REQUIRED_VALUES,
    generation_error,
    get_generation_value,
)
from zoo_huggingface.token_filters import TokenIds, generates_padding, token_filters

_SAMPLING = {
    # key: (value that has no effect, default of transformers, sampler, its parameter)
    "top_k": (0, 50, "top-k", "k"),
    "top_p": (1.0, 1.0, "top-p", "p"),
    "min_p": (0.0, 0.0, "min-p", "p"),
    "typical_p": (1.0, 1.0, "typical", "mass"),
}
"""Conditions of sampling, in the order of transformers."""
_CUTOFFS = {"epsilon_cutoff": 0.0, "eta_cutoff": 0.0, "top_h": None}
_SEARCH_KEYS = [
    "do_sample",
    "num_beams",
    "length_penalty",
    "early_stopping",
    "num_return_sequences",
    "remove_invalid_values",
    "renormalize_logits",
    "temperature",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "min_length",
    "min_new_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "eos_token_id",
    "decoder_start_token_id",
]
SEARCH_KEYS = frozenset([*_SEARCH_KEYS, *_SAMPLING, *_CUTOFFS]) - {
    "eos_token_id",
    "decoder_start_token_id",
}
"""Keys that are a sampler or a filter in a spec."""
GENERATION_KEYS = frozenset(
    [*_SEARCH_KEYS, *_SAMPLING, *_CUTOFFS, *LIMITS, *REQUIRED_VALUES, *IGNORED_KEYS]
)
"""Every known key of a generation config. Configs of transformers 4 may contain them too."""
_OVERRIDE = "override it with --set sampler=..."

Generation = Mapping[str, Any]


def generation_values(
    folder: Path,
    config: Mapping[str, Any],
    start_keys: Sequence[str],
    ignore: Collection[str] = (),
) -> dict[str, Any]:
    """Return what the generation config of a folder adds to a config: tokens, and itself.

    Args:
        ignore: keys of the generation config that are left out.
    """
    found = read_generation_config(folder, config)
    generation = {key: value for key, value in found.items() if key not in ignore}
    overrides = {key: generation.get(key) for key in ("eos_token_id", *start_keys)}
    given = {key: value for key, value in overrides.items() if value is not None}
    return {**given, "generation": generation}


def read_generation_config(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the generation config of a folder; in older folders it is in ``config.json``."""
    path = folder / GENERATION_FILE
    if path.is_file():
        generation = read_json(path)
        if not isinstance(generation, dict):
            raise ZooError(f"{GENERATION_FILE} should contain a JSON object")
        return generation
    own = {"eos_token_id", "decoder_start_token_id", *IGNORED_KEYS}
    return {key: config[key] for key in config if key in GENERATION_KEYS - own}


def generation_spec(
    generation: Generation, *, pad: int | None, eos: list[int], prompt: int | None, vocab: int
) -> dict[str, Any]:
    """Return the sections `sampler` and `filters`; raise ZooError if the zoo has no counterpart.

    Args:
        generation: the generation config.
        pad: the padding token.
        eos: the end tokens.
        prompt: the number of tokens before the first generated one; None if it varies.
        vocab: the size of the vocabulary.
    """
    for key, value in generation.items():
        if key not in GENERATION_KEYS and value is not None:
            raise generation_error(key, value, "this key is not known")
        if key in REQUIRED_VALUES and value not in REQUIRED_VALUES[key]:
            raise generation_error(
                key, value, "it changes the generated tokens and is not supported"
            )
    banned = None if generates_padding(generation, pad=pad, eos=eos) else pad
    tokens = TokenIds(generation, banned, vocab)
    filters = [*_filters(generation), *token_filters(tokens, eos=eos, prompt=prompt)]
    return {"sampler": _sampler(generation), **({"filters": filters} if filters else {})}


def _sampler(generation: Generation) -> Any:
    beams = get_generation_value(generation, "num_beams", int, 1)
    if beams > 1:
        count = get_generation_value(generation, "num_return_sequences", int, 1)
        return {
            "type": "beam",
            "width": beams,
            "length_penalty": get_generation_value(generation, "length_penalty", float, 1.0),
            "early_stopping": generation.get("early_stopping") or False,
            **({"n_best": count} if count > 1 else {}),
        }
    if not get_generation_value(generation, "do_sample", bool, False):
        return "greedy"
    temperature = get_generation_value(generation, "temperature", float, 1.0)
    parts: list[dict[str, Any]] = []
    for key in _active_sampling(generation):
        _, _, name, param = _SAMPLING[key]
        parts.append({"type": name, param: _sampling_value(generation, key)})
    first, *others = parts or [{"type": "temperature"}]
    first["temperature"] = temperature
    return {"type": "combined", "samplers": [first, *others]} if others else first


def _filters(generation: Generation) -> Iterator[dict[str, Any]]:
    penalty = get_generation_value(generation, "repetition_penalty", float, 1.0)
    if penalty < 1:
        raise generation_error("repetition_penalty", penalty, "it should be at least 1")
    if penalty > 1:
        yield {"type": "repetition-penalty", "penalty": penalty}
    size = get_generation_value(generation, "no_repeat_ngram_size", int, 0)
    if size:
        yield {"type": "no-repeat-ngram", "n": size}


def warn_of_settings(generation: Generation) -> None:
    """Warn of settings that a spec does not contain."""
    for note in _notes(generation):
        warnings.warn(f"{GENERATION_FILE}: {note}", ZooWarning, stacklevel=2)


def _notes(generation: Generation) -> Iterator[str]:
    """Yield messages about settings that the spec does not contain."""
    for key, default in LIMITS.items():
        value = generation.get(key)
        if value not in (None, default):
            argument = f"pass max_length={value}" if key != "max_time" else "it is not applied"
            yield f"'{key}' is {value}, which a spec does not contain; {argument} when you generate"
    sampled = get_generation_value(generation, "do_sample", bool, False)
    if get_generation_value(generation, "num_beams", int, 1) > 1:
        if sampled:
            yield f"'do_sample' is true, but beam search of the zoo does not sample; {_OVERRIDE}"
        if generation.get("renormalize_logits"):
            yield "'renormalize_logits' is true, but scores of beams are not renormalized"
    elif sampled:
        for key, inactive in _CUTOFFS.items():
            if generation.get(key) not in (None, inactive):
                yield f"'{key}' is {generation[key]}, which samplers of the zoo do not apply"
        count = get_generation_value(generation, "num_return_sequences", int, 1)
        if count > 1:
            yield f"'num_return_sequences' is {count}, but a random sampler returns one sequence"
    if generation.get("remove_invalid_values"):
        yield "'remove_invalid_values' is true, but generation fails for logits that are NaN or inf"


def _active_sampling(generation: Generation) -> list[str]:
    return [
        key
        for key, (inactive, _, _, _) in _SAMPLING.items()
        if _sampling_value(generation, key) != inactive
    ]


def _sampling_value(generation: Generation, key: str) -> Any:
    default = _SAMPLING[key][1] if key in _SAMPLING else None
    return get_generation_value(generation, key, int if key == "top_k" else float, default)


def generated_vocab(spec: Mapping[str, Any]) -> int:
    """Return the size of the vocabulary that the model of a spec generates."""
    names = ("target", "source", "embedding")
    return int(next(filter(None, (get_path(spec, f"model.{name}.vocab") for name in names))))
