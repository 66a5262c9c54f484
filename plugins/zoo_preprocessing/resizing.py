"""Conversion of images to a size and a number of channels."""

from typing import Literal

import numpy as np

from zoo import DataError
from zoo.plugin import Array, MissingExtra

Mode = Literal["stretch", "crop", "pad", "none"]
Resample = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
Size = tuple[int | None, int | None]


def to_channels(image: Array, channels: int) -> Array:
    """Return an image [H, W, 1 or 3] as grey (ITU-R 601-2) or RGB."""
    if image.shape[-1] == channels:
        return image
    if channels == 3:
        return image.repeat(3, axis=-1)
    weights = np.array([19595, 38470, 7471], dtype=np.uint32)
    return ((image @ weights + 0x8000) >> 16).astype(np.uint8)[..., None]


def scale_and_crop(
    image: Array, size: Size, scaled: int | tuple[int, int], resample: Resample
) -> Array:
    """Return the centre of an image [H, W, C] that is scaled first; small ones get black borders.

    Args:
        size: height and width of the result; a side that is None is not cut.
        scaled: height and width before, or the shortest side: the longer one is rounded down.
        resample: filter of Pillow.
    """
    height, width = image.shape[:2]
    if isinstance(scaled, int):
        short = min(height, width)
        scaled = (scaled * height // short, scaled * width // short)
    image = _scale(image, *scaled, resample)
    return _centre(image, size[0] or scaled[0], size[1] or scaled[1])


def resize(image: Array, size: Size, mode: Mode, resample: Resample = "bilinear") -> Array:
    """Return an image [H, W, C] in a size; a side that is None keeps the aspect ratio."""
    height, width = image.shape[:2]
    H, W = size
    if (H in (None, height)) and (W in (None, width)):
        return image
    if mode == "none":
        expected = " x ".join("any" if side is None else str(side) for side in size)
        raise DataError(
            f"the image is {height} x {width} (height x width), but the model takes {expected}; "
            "resize the image; a model trained with resize: stretch, crop or pad in its spec "
            "takes all sizes"
        )
    if H is None or W is None:
        ratio = (H / height) if H is not None else ((W or width) / width)
        return _scale(image, H or _round(height * ratio), W or _round(width * ratio), resample)
    if mode == "stretch":
        return _scale(image, H, W, resample)
    choose = max if mode == "crop" else min
    ratio = choose(H / height, W / width)
    scaled = _scale(image, _round(height * ratio), _round(width * ratio), resample)
    return _centre(scaled, H, W)


def _centre(image: Array, H: int, W: int) -> Array:
    """Cut or pad an image with zeros around its centre."""
    height, width, channels = image.shape
    found = np.zeros((H, W, channels), dtype=image.dtype)
    top, left = (height - H) // 2, (width - W) // 2
    rows = slice(max(top, 0), min(top + H, height))
    columns = slice(max(left, 0), min(left + W, width))
    part = image[rows, columns]
    y, x = max(-top, 0), max(-left, 0)
    found[y : y + part.shape[0], x : x + part.shape[1]] = part
    return found


def _scale(image: Array, H: int, W: int, resample: Resample) -> Array:
    if image.shape[:2] == (H, W):
        return image
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("resizing images", library="pillow", extra="train") from None
    picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
    return np.asarray(picture.resize((W, H), Image.Resampling[resample.upper()])).reshape(H, W, -1)


def _round(size: float) -> int:
    return max(round(size), 1)
