"""Mel features from the feature extractor of a folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from zoo import ZooError
from zoo_huggingface.config_fields import config_error, get_value, read_json

FILE = "preprocessor_config.json"
_PARAMETERS = {"sampling_rate": "rate", "n_fft": "window", "hop_length": "hop"}
"""Keys of the file and parameters of the embedding."""
_EXPECTED = {
    "chunk_length": None, "do_normalize": False, "dither": 0.0, "feature_extractor_type": None,
    "feature_size": None, "mel_filters": None, "n_samples": None, "nb_max_frames": None,
    "padding_side": "right", "padding_value": 0.0, "processor_class": None,
    "return_attention_mask": None,
}  # fmt: skip
"""Other keys, and the only value that is supported; None if the model determines it."""


_FILTER_BANK: dict[str, Any] = {
    "dither": 0.0, "feature_extractor_type": None, "feature_size": None, "num_mel_bins": None,
    "padding_side": "right", "padding_value": 0.0, "processor_class": None,
    "return_attention_mask": None, "sampling_rate": 16000,
}  # fmt: skip
_NORMALISATION = {"normalize_means": "subtract_means", "normalize_vars": "divide_deviations"}


def read_feature_extractor(folder: Path) -> dict[str, Any]:
    """Return {"feature_extractor": parameters of the embedding}, empty without the file."""
    config = _read(folder)
    if config is None:
        return {}
    _check(config, _EXPECTED, _PARAMETERS)
    given = {
        ours: get_value(config, theirs, int, file=FILE)
        for theirs, ours in _PARAMETERS.items()
        if theirs in config
    }
    return {"feature_extractor": given}


def read_filter_bank(folder: Path) -> dict[str, Any]:
    """Return {"feature_extractor": normalisation of a filter bank}, empty without the file."""
    config = _read(folder)
    if config is None:
        return {}
    _check(config, _FILTER_BANK, (*_NORMALISATION, "do_ceptral_normalize"))
    normalises = get_value(config, "do_ceptral_normalize", bool, True, file=FILE)
    given = {
        ours: normalises and get_value(config, theirs, bool, True, file=FILE)
        for theirs, ours in _NORMALISATION.items()
    }
    return {"feature_extractor": given}


def _read(folder: Path) -> dict[str, Any] | None:
    path = folder / FILE
    if not path.is_file():
        return None
    config = read_json(path)
    if not isinstance(config, dict):
        raise ZooError(f"{FILE} should contain a JSON object")
    return config


def _check(config: Mapping[str, Any], expected: Mapping[str, Any], used: Collection[str]) -> None:
    """Raise ZooError for a key that is neither used nor has the expected value."""
    for key, value in config.items():
        if key in used:
            continue
        if key not in expected:
            raise config_error(key, value, "this key is not known", FILE)
        if expected[key] is not None and value not in (None, expected[key]):
            raise config_error(key, value, f"only {expected[key]!r} is supported", FILE)
