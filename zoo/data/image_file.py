"""Reading of image files."""

from __future__ import annotations

import io
import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zoo.data.bounds import max_content, too_large
from zoo.errors import DataError, MissingExtra

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Other formats of Pillow are not read: that of EPS starts another program, Ghostscript."""
_GREY_MODES = {"1", "L", "LA", "I;16", "I;16B", "I;16L", "I"}


def read_image(source: str | os.PathLike[str] | bytes) -> NDArray[np.uint8]:
    """Return the image in a file, rotated as its EXIF data says; transparency is dropped.

    The size is checked before the image is decoded: its pixels have at most `max_content` bytes.

    Args:
        source: path of the file, or its content.

    Shapes:
        [H, W, 1] for grey images, [H, W, 3] for RGB, palette and CMYK images.

    Raises:
        DataError: if the file is missing, or is not an image.
    """
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise MissingExtra("reading images", library="pillow", extra="train") from None
    file = "image" if isinstance(source, bytes) else os.fspath(source)
    Image.MAX_IMAGE_PIXELS = bound = max_content(0) // 3
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            opened = io.BytesIO(source) if isinstance(source, bytes) else source
            with Image.open(opened, formats=_FORMATS) as image:
                _check_depth(image)
                ImageOps.exif_transpose(image, in_place=True)
                pixels = np.asarray(_to_8_bits(image))
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise too_large(f"the image has more than {bound:,} pixels", file) from None
    except (UnidentifiedImageError, SyntaxError):
        formats = "PNG, JPEG, BMP, GIF, WebP, TIFF or PPM"
        raise DataError(f"it is not a valid {formats} image", file) from None
    except ValueError as error:
        raise DataError(f"the image cannot be used: {error}", file) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot be read: {reason}", file) from None
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _check_depth(image: Any) -> None:
    # Mode I also has the 16 bits of PNG and PGM files; in TIFF files it has 32.
    if image.mode == "F" or (image.mode == "I" and image.format == "TIFF"):
        raise ValueError("the range of its 32-bit pixels is unknown; convert it to 8 or 16 bits")


def _to_8_bits(image: Any) -> Any:
    if image.mode == "RGB":
        return image  # `convert` would copy it
    if image.mode not in _GREY_MODES:
        return image.convert("RGB")
    if image.mode.startswith("I"):  # 16 bits, also in mode I
        return (np.asarray(image).clip(0, 65535) >> 8).astype(np.uint8)
    return image.convert("L")
