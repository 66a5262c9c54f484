"""Reading of image files."""

from __future__ import annotations

import io
import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zoo.errors import DataError, MissingExtra

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Other formats of Pillow are not read: that of EPS starts another program, Ghostscript."""
_GREY_MODES = {"1", "L", "LA", "I;16", "I;16B", "I;16L", "I", "F"}


def read_image(source: str | os.PathLike[str] | bytes) -> NDArray[np.uint8]:
    """Return the image in a file, rotated as its EXIF data says; transparency is dropped.

    Args:
        source: the path of the file, or its content.

    Shapes:
        [H, W, 1] for grey images, [H, W, 3] for RGB, palette and CMYK images.

    Raises:
        DataError: if the file is missing, or is not an image.
    """
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise MissingExtra("reading images", library="pillow", extra="train") from None
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    name = "" if isinstance(source, bytes) else os.fspath(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=_FORMATS) as opened:
                pixels = np.asarray(_to_8_bits(ImageOps.exif_transpose(opened)))
    except (UnidentifiedImageError, SyntaxError):
        formats = "PNG, JPEG, BMP, GIF, WebP, TIFF or PPM"
        raise DataError(f"it is not a valid {formats} image", name) from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError, ValueError) as error:
        raise DataError(f"the image cannot be used: {error}", name) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot be read: {reason}", name) from None
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _to_8_bits(image: Any) -> Any:
    if image.mode not in _GREY_MODES:
        return image.convert("RGB")
    if image.mode.startswith("I"):  # 16 bits, also in mode I
        return (np.asarray(image).clip(0, 65535) >> 8).astype(np.uint8)
    return image.convert("L")
