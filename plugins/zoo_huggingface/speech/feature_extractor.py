"""Log-mel features from the feature extractor of a folder."""

from __future__ import annotations

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


def read_feature_extractor(folder: Path) -> dict[str, Any]:
    """Return {"feature_extractor": parameters of the embedding}, empty without the file."""
    path = folder / FILE
    if not path.is_file():
        return {}
    config = read_json(path)
    if not isinstance(config, dict):
        raise ZooError(f"{FILE} should contain a JSON object")
    for key, value in config.items():
        if key in _PARAMETERS:
            continue
        if key not in _EXPECTED:
            raise config_error(key, value, "this key is not known", FILE)
        expected = _EXPECTED[key]
        if expected is not None and value not in (None, expected):
            raise config_error(key, value, f"only {expected!r} is supported", FILE)
    given = {
        ours: get_value(config, theirs, int, file=FILE)
        for theirs, ours in _PARAMETERS.items()
        if theirs in config
    }
    return {"feature_extractor": given}
