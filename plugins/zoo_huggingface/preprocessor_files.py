"""Preprocessors from the image processor or feature extractor of a folder, and back.

What the preprocessors of the zoo do not compute is reported by its key, and the model is imported
without a preprocessor.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo import ZooError, ZooWarning
from zoo_huggingface.config_fields import config_error, get_path, get_value, read_json

FILE = "preprocessor_config.json"
_BILINEAR = 2
_NAMES = ("feature_extractor_type", "image_processor_type", "processor_class", "_processor_class")
_NO_EFFECT: Mapping[str, tuple[Any, ...]] = {
    "crop_size": (),  # any value, without do_center_crop
    "data_format": ("channels_first",),
    "default_to_square": (True,),
    "device": (),
    "disable_grouping": (),
    "do_center_crop": (False,),
    "do_convert_rgb": (),  # images are read as the model takes them
    "do_pad": (False,),
    "feature_size": (1,),
    "input_data_format": (),
    "pad_size": (),
    "padding_side": ("right",),
    "padding_value": (0, 0.0),
    "return_attention_mask": (),
    "return_tensors": (),
}
"""Other keys with the values that change nothing; an empty tuple is any value."""


def read_preprocessor(folder: Path, kind: str) -> dict[str, Any]:
    """Return {"preprocessor": SPEC} for ``image`` or ``audio``, empty without the file."""
    path = folder / FILE
    if not path.is_file():
        return {}
    config = read_json(path)
    if not isinstance(config, dict):
        raise ZooError(f"{FILE} should contain a JSON object")
    rest = {key: value for key, value in config.items() if key not in _NAMES and value is not None}
    try:
        found = _image(rest) if kind == "image" else _audio(rest)
        for key, value in rest.items():
            if key not in _NO_EFFECT or not _is_one_of(value, _NO_EFFECT[key]):
                raise config_error(key, value, "it is not supported", FILE)
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
    if kind != "image" or source["resize"] not in ("stretch", "none") or source["binarise"]:
        return {}
    resize, size = source["resize"] == "stretch", source["size"]
    if resize and size is None:
        return {}
    height, width = size if isinstance(size, list) else (size, size)
    sizes = {"size": {"height": height, "width": width}, "resample": _BILINEAR} if resize else {}
    channels = get_path(spec, "model.source.channels") or 3
    mean, std = (
        value if isinstance(value, list) else [value] * channels
        for value in (source["mean"], source["std"])
    )
    return {
        FILE: {
            "image_processor_type": "ViTImageProcessor",
            "do_resize": resize,
            **sizes,
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
            "image_mean": mean,
            "image_std": std,
        }
    }


def _image(rest: dict[str, Any]) -> dict[str, Any]:
    resizes, size = rest.pop("do_resize", True), rest.pop("size", 224)
    resample = rest.pop("resample", _BILINEAR)
    if resizes and resample != _BILINEAR:
        raise config_error("resample", resample, "only 2 (bilinear) is supported", FILE)
    if isinstance(size, Mapping) and set(size) == {"height", "width"}:
        size = [size["height"], size["width"]]
    if not isinstance(size, (int, list)):
        raise config_error("size", size, "a number, or height and width, is supported", FILE)
    factor = rest.pop("rescale_factor", 1 / 255)
    if not rest.pop("do_rescale", True) or not math.isclose(factor, 1 / 255):
        raise config_error("rescale_factor", factor, "only 1/255 is supported", FILE)
    mean, std = rest.pop("image_mean", [0.5] * 3), rest.pop("image_std", [0.5] * 3)
    normalised = {"mean": mean, "std": std} if rest.pop("do_normalize", True) else {}
    resized = {"size": size, "resize": "stretch"} if resizes else {"resize": "none"}
    return {"type": "image", **resized, **normalised}


def _audio(rest: dict[str, Any]) -> dict[str, Any]:
    rate = get_value(rest, "sampling_rate", int, 16000, file=FILE)
    normalise = get_value(rest, "do_normalize", bool, True, file=FILE)
    for key in ("sampling_rate", "do_normalize"):
        rest.pop(key, None)
    return {"type": "audio", "rate": rate, "resample": True, "normalise": normalise}


def _is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    return not allowed or any(value is each or value == each for each in allowed)
