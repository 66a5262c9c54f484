"""Image processors of transformers as the preprocessor 'image'."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from zoo_huggingface.config_fields import config_error

_FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""Filters of Pillow by their number."""
_SUFFIXES = ("Fast", "Pil", "ImageProcessor", "FeatureExtractor")
_HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_OPENAI = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
_CROPPED = {
    "size": {"shortest_edge": 224}, "default_to_square": False, "do_center_crop": True,
    "crop_size": 224, "resample": 3, **_OPENAI,
}  # fmt: skip
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "ViT": {"size": 224, "resample": 2, **_HALF},
    "CLIP": _CROPPED,
    "Bit": _CROPPED,
    "Siglip": {"size": [224, 224], "default_to_square": False, "resample": 3, **_HALF},
    "DeiT": {"size": 256, "resample": 3, "do_center_crop": True, "crop_size": 224, **_HALF},
    "Beit": {"size": 224, "resample": 3, "crop_size": 224, **_HALF},
    "Blip": {"size": 384, "resample": 3, **_OPENAI},
}
"""Image processors and the values of keys that a file does not contain."""
_COMMON = {
    "do_resize": True, "default_to_square": True, "do_center_crop": False, "crop_size": None,
    "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
}  # fmt: skip


def image_spec(rest: dict[str, Any], name: str, file: str) -> dict[str, Any]:
    """Return the spec of the preprocessor.

    Args:
        rest: the keys of the file; those that are used are removed.
        name: the class of the image processor.
        file: name of the file, for messages.
    """
    short = name
    for suffix in _SUFFIXES:
        short = short.removesuffix(suffix)
    if short not in _DEFAULTS:
        supported = ", ".join(f"{known}ImageProcessor" for known in _DEFAULTS)
        raise config_error("image_processor_type", name, f"supported values: {supported}", file)
    values = {**_COMMON, **_DEFAULTS[short]}
    values |= {key: rest.pop(key) for key in values if key in rest}
    return {"type": "image", **_resizing(values, file), **_normalisation(values, file)}


def _resizing(values: Mapping[str, Any], file: str) -> dict[str, Any]:
    crops = values["do_center_crop"]
    if not values["do_resize"]:
        if crops:
            raise config_error("do_center_crop", crops, "it is only supported with do_resize", file)
        return {"resize": "none"}
    resample = values["resample"]
    if type(resample) is not int or not 0 <= resample < len(_FILTERS):
        raise config_error("resample", resample, f"it should be 0 to {len(_FILTERS) - 1}", file)
    scaled = _size("size", values["size"], file, square=values["default_to_square"])
    if not crops and isinstance(scaled, int):
        raise config_error(
            "size", values["size"], "the shortest edge is only supported with do_center_crop", file
        )
    sizes = {"size": scaled, "resize": "stretch"}
    if crops:
        size = _size("crop_size", values["crop_size"], file)
        sizes = {"size": size, "resize": "crop", "scale_to": scaled}
    return {**sizes, "resample": _FILTERS[resample]}


def _size(key: str, size: Any, file: str, *, square: Any = True) -> int | list[int]:
    """Return height and width, or the shortest edge."""
    if isinstance(size, Mapping) and set(size) == {"shortest_edge"}:
        size, square = size["shortest_edge"], False
    elif isinstance(size, Mapping) and set(size) == {"height", "width"}:
        size = [size["height"], size["width"]]
    count = 2 if isinstance(size, list) or square else 1
    sides = size if isinstance(size, list) else [size] * count
    if len(sides) != count or any(type(side) is not int or side < 1 for side in sides):
        raise config_error(
            key, size, "a number, height and width, or shortest_edge is supported", file
        )
    return sides[0] if len(sides) == 1 else sides


def _normalisation(values: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return mean and std of pixels from 0 to 1; another scale changes both."""
    factor = values["rescale_factor"] if values["do_rescale"] else 1.0
    if type(factor) not in (int, float) or not 0 < factor < math.inf:
        raise config_error("rescale_factor", factor, "it should be a positive number", file)
    scale = 1.0 if math.isclose(factor, 1 / 255) else 255 * factor
    if not values["do_normalize"]:
        return {} if scale == 1 else {"std": 1 / scale}
    found = {}
    for key in ("mean", "std"):
        value = values[f"image_{key}"]
        numbers = value if isinstance(value, list) else [value]
        if not numbers or any(type(each) not in (int, float) for each in numbers):
            raise config_error(f"image_{key}", value, "it should be a number or a list", file)
        if key == "std" and min(numbers) <= 0:
            raise config_error("image_std", value, "it should be positive", file)
        scaled = [each / scale for each in numbers]
        found[key] = scaled if isinstance(value, list) else scaled[0]
    return found


def processor_config(source: Mapping[str, Any], channels: int) -> dict[str, Any] | None:
    """Return the config of an image processor that computes a preprocessor, None if there is none.

    Args:
        source: the resolved spec of the preprocessor.
        channels: number of channels of the images.
    """
    if source["resize"] not in ("stretch", "none") or source["binarise"]:
        return None
    resize, size = source["resize"] == "stretch", source["size"]
    if resize and size is None:
        return None
    height, width = size if isinstance(size, list) else (size, size)
    sizes: dict[str, Any] = {}
    if resize:
        sizes = {"size": {"height": height, "width": width}}
        sizes["resample"] = _FILTERS.index(source["resample"])
    mean, std = (
        value if isinstance(value, list) else [value] * channels
        for value in (source["mean"], source["std"])
    )
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": resize,
        **sizes,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": mean,
        "image_std": std,
    }
