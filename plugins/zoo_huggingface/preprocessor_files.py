"""Preprocessors from the image processor or feature extractor of a folder, and back.

What the preprocessors of the zoo do not compute is reported by its key, and the model is imported
without a preprocessor.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo import ZooError, ZooWarning
from zoo_huggingface.config_fields import config_error, get_path, get_value, read_json
from zoo_huggingface.image_processors import image_spec, processor_config

FILE = "preprocessor_config.json"
_COMBINED_FILE = "processor_config.json"
"""File of newer folders, with the image processor and the tokenizer of a model."""
_NAMES = ("feature_extractor_type", "image_processor_type", "processor_class", "_processor_class")
_NO_EFFECT: Mapping[str, tuple[Any, ...]] = {
    "data_format": ("channels_first",),
    "device": (),
    "disable_grouping": (),
    "do_convert_rgb": (),  # images are read as the model takes them
    "do_pad": (False,),
    "do_reduce_labels": (),  # of segmentation maps
    "reduce_labels": (),
    "feature_size": (1,),
    "input_data_format": (),
    "pad_size": (),
    "padding_side": ("right",),
    "padding_value": (0, 0.0),
    "return_attention_mask": (),
    "return_tensors": (),
    "size_divisor": (),
}
"""Other keys with the values that change nothing; an empty tuple is any value."""


def read_preprocessor(folder: Path, kind: str, default: str = "ViT") -> dict[str, Any]:
    """Return {"preprocessor": SPEC} for ``image`` or ``audio``, empty without the file.

    Args:
        folder: the folder of the model.
        kind: ``image`` or ``audio``.
        default: the image processor of the architecture, if the file does not name one.
    """
    file, config = _read_file(folder)
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise ZooError(f"{file} should contain a JSON object")
    rest = {key: value for key, value in config.items() if key not in _NAMES and value is not None}
    try:
        if kind == "image":
            names = [config[key] for key in _NAMES[:2] if isinstance(config.get(key), str)]
            found = image_spec(rest, next(iter(names), default), file)
            if found["resize"] != "none" and "pad_size" not in rest:
                rest.pop("do_pad", None)  # images of one size
        else:
            found = _audio(rest)
        for key, value in rest.items():
            if key not in _NO_EFFECT or not _is_one_of(value, _NO_EFFECT[key]):
                raise config_error(key, value, "it is not supported", file)
    except ZooError as error:
        warnings.warn(
            f"{error}; the model is imported without a preprocessor and takes tensors",
            ZooWarning,
            stacklevel=2,
        )
        return {}
    return {"preprocessor": found}


def preprocessor_files(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file of an export, empty if the source of a spec has no equal in transformers."""
    source = get_path(spec, "preprocessing.source") or {}
    kind = str(source.get("type")).rpartition(":")[2]
    if kind == "audio":
        sizes = {"feature_size": 1, "padding_side": "right", "padding_value": 0.0}
        rates = {"sampling_rate": source["rate"], "do_normalize": source["normalise"]}
        return {FILE: {"feature_extractor_type": "Wav2Vec2FeatureExtractor", **rates, **sizes}}
    if kind != "image":
        return {}
    channels = get_path(spec, "model.source.channels") or 3
    config = processor_config(source, channels)
    return {} if config is None else {FILE: config}


def warn_of_size(preprocessor: Mapping[str, Any], side: Any) -> None:
    """Warn if images have another size than the model takes."""
    size = preprocessor.get("size", side)
    if size in (side, [side, side]):
        return
    settings = " ".join(
        f"--set preprocessing.source.{key}={side}"
        for key in ("size", "scale_to")
        if key in preprocessor
    )
    warnings.warn(
        f"{FILE}: images have the size {size}, but the model has positions for {side}, which "
        f"transformers interpolates and the zoo does not; import it with {settings}",
        ZooWarning,
        stacklevel=2,
    )


def _read_file(folder: Path) -> tuple[str, Any]:
    """Return the name of the file and its content, or None if the folder has none."""
    if (folder / FILE).is_file():
        return FILE, read_json(folder / FILE)
    if (folder / _COMBINED_FILE).is_file():
        content = read_json(folder / _COMBINED_FILE)
        if isinstance(content, dict):
            return _COMBINED_FILE, content.get("image_processor")
    return FILE, None


def _audio(rest: dict[str, Any]) -> dict[str, Any]:
    rate = get_value(rest, "sampling_rate", int, 16000, file=FILE)
    normalise = get_value(rest, "do_normalize", bool, True, file=FILE)
    for key in ("sampling_rate", "do_normalize"):
        rest.pop(key, None)
    return {"type": "audio", "rate": rate, "resample": True, "normalise": normalise}


def _is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    return not allowed or any(value is each or value == each for each in allowed)
