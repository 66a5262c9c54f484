"""Preprocessor 'image': pixels as a float tensor."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeGuard

import numpy as np
from pydantic import Field

from zoo import DataError, ZooError
from zoo.plugin import Array, FromParent, Preprocessor, TensorSchema, read_image
from zoo_preprocessing.resizing import (
    Mode,
    Resample,
    Size,
    resize as resize_image,
    scale_and_crop,
    to_channels,
)

Side = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]


class Image(Preprocessor):
    r"""Pixels of an image, scaled to 0..1 and normalised; grey or RGB, as the model takes.

    .. math:: x = (p / 255 - \mu) / \sigma

    Resizing is that of Pillow, with antialiasing.

    Args:
        size: height and width, or one number for both; by default those of the model or, if
            images are not resized, those of the training images if all have the same.
        resize: ``stretch`` to the size; ``crop`` keeps the aspect ratio and cuts the centre;
            ``pad`` keeps it and adds black borders; ``none`` rejects images of another size.
        scale_to: size before a ``crop``: the shortest side, or height and width; by default the
            smallest that covers the size.
        resample: filter of the resizing: ``bilinear``, ``bicubic``, ``lanczos``, ``nearest``,
            ``box`` or ``hamming``.
        mean: subtracted, for all channels or for each.
        std: divisor, for all channels or for each.
        binarise: set pixels to 0 or 1 before the normalisation, with the threshold 0.5; ``sample``
            sets a pixel to 1 with the probability of its intensity, from random numbers that depend
            on the pixels of the image only (Salakhutdinov and Murray 2008).
        flip: flip half of the training images horizontally.
        shift: shift training images by up to this number of pixels in each direction.
        schema: schema of the key in the model's batch.

    Shapes:
        uint8 [H, W, 1 or 3] -> float32 [C, H, W].
    """

    name: ClassVar[str] = "image"
    paper: ClassVar[str] = (
        "Krizhevsky, Sutskever and Hinton 2012, ImageNet classification with deep convolutional "
        "neural networks, section 4.1"
    )
    content: ClassVar[Any] = "image"

    def __init__(
        self,
        *,
        size: Side | tuple[Side, Side] | None = None,
        resize: Mode = "stretch",
        scale_to: Side | tuple[Side, Side] | None = None,
        resample: Resample = "bilinear",
        mean: float | list[float] = 0.0,
        std: Positive | list[Positive] = 1.0,
        binarise: bool | Literal["sample"] = False,
        flip: bool = False,
        shift: Annotated[int, Field(ge=0)] = 0,
        schema: FromParent[TensorSchema],
    ) -> None:
        self.size = size
        self.resize = resize
        self.scale_to = scale_to
        self.resample = resample
        self.mean = mean
        self.std = std
        self.binarise = binarise
        self.flip = flip
        self.shift = shift
        self.schema = schema

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        channels, height, width = self._dims()
        if self.scale_to is not None and self.resize != "crop":
            raise ZooError(f"scale_to requires resize: crop, not {self.resize}")
        if self.size is not None:
            wanted = (self.size, self.size) if isinstance(self.size, int) else self.size
            for name, asked, side in zip("HW", wanted, (height, width), strict=True):
                if isinstance(side, int) and side != asked:
                    raise ZooError(
                        f"size sets {name} to {asked}, but the model takes {name} = {side} "
                        f"{self.schema.format()}"
                    )
            height, width = wanted
        elif self.resize != "none" and not isinstance(height, int) and not isinstance(width, int):
            raise ZooError(
                "size is required, because the model takes images of any size "
                f"{self.schema.format()}; set size, for example 224, or resize: none"
            )
        for name, value in (("mean", self.mean), ("std", self.std)):
            if isinstance(value, list) and len(value) != channels:
                raise ZooError(
                    f"{name} has {len(value)} values, but the model takes {channels} channels"
                )
        return {key: self.schema._replace(dtype="float", dims=("B", channels, height, width))}

    def fit(self, values: Iterable[Any]) -> dict[str, Any]:
        """Return the size of images that are not resized, if it is the same for all of them, so
        that the model rejects images of another size than it was trained for."""
        _, height, width = self.outputs("image")["image"].dims[1:]  # type: ignore[index]
        if self.resize != "none" or (isinstance(height, int) and isinstance(width, int)):
            return {}
        sizes = set()
        for value in values:
            sizes.add(_to_pixels(value).shape[:2])
            if len(sizes) > 1:
                return {}
        return {"size": list(sizes.pop())} if sizes else {}

    def encode(self, value: Any) -> Array:
        array: Array = self.encode_many([value])[0]
        return array

    def encode_many(self, values: Sequence[Any]) -> Sequence[Array] | Array:
        channels, height, width = self.outputs("image")["image"].dims[1:]  # type: ignore[index]
        size: Size = (
            height if isinstance(height, int) else None,
            width if isinstance(width, int) else None,
        )
        if self.scale_to is None and _is_batch(values, int(channels), size):
            return self._scale(values)
        pixels = [self._resize(to_channels(_to_pixels(v), int(channels)), size) for v in values]
        if len({image.shape for image in pixels}) == 1:
            return self._scale(np.stack(pixels))
        return [self._scale(image) for image in pixels]

    def transform(self, key: str, array: Array, rng: np.random.Generator) -> Mapping[str, Array]:
        return {key: self.transform_many(key, array[None], [rng])[key][0]}

    def transform_many(
        self, key: str, arrays: Sequence[Array] | Array, rngs: Iterable[np.random.Generator]
    ) -> Mapping[str, Sequence[Array] | Array]:
        if not self.flip and not self.shift:
            return {key: arrays}
        if not isinstance(arrays, np.ndarray):
            return super().transform_many(key, arrays, rngs)
        numbers = np.array([rng.random(3) for rng in rngs])  # flip, down, right
        if self.flip:
            images, arrays = arrays, arrays.copy()
            for row in np.flatnonzero(numbers[:, 0] < 0.5).tolist():
                arrays[row] = images[row, ..., ::-1]
        if self.shift:
            shifts = (numbers[:, 1:] * (2 * self.shift + 1)).astype(np.int64) - self.shift
            arrays = self._move(arrays, shifts)
        return {key: arrays}

    def read(self, path: Path) -> Array:
        return read_image(path)

    def _dims(self) -> tuple[int, int | str, int | str]:
        dims = self.schema.dims or ()
        if len(dims) != 4 or dims[1] not in (1, 3) or self.schema.dtype not in ("float", "number"):
            raise ZooError(
                "preprocessor 'image' makes float [B, C, H, W] with 1 or 3 channels, but the model "
                f"takes {self.schema.dtype} {self.schema.format()}"
            )
        return int(dims[1]), dims[2], dims[3]

    def _resize(self, image: Array, size: Size) -> Array:
        if self.scale_to is not None:
            return scale_and_crop(image, size, self.scale_to, self.resample)
        return resize_image(image, size, self.resize, self.resample)

    def _scale(self, pixels: Array) -> Array:
        """Return the values of pixels [..., H, W, C], float32 [..., C, H, W]."""
        scaled = np.moveaxis(pixels, -1, -3).astype(np.float32, order="C")
        scaled /= np.float32(255)
        if self.binarise:
            thresholds = _sample(pixels) if self.binarise == "sample" else 0.5
            scaled = (scaled >= thresholds).astype(np.float32)
        return self._normalise(scaled)

    def _normalise(self, scaled: Array) -> Array:
        if self.mean == 0 and self.std == 1:
            return scaled
        mean, std = (np.array(v, np.float32).reshape(-1, 1, 1) for v in (self.mean, self.std))
        return (scaled - mean) / std

    def _move(self, images: Array, shifts: Array) -> Array:
        """Return images [B, C, H, W] moved down and right by some pixels [B, 2]; the border is
        black."""
        C, H, W = images.shape[1:]
        moved: Array = np.broadcast_to(
            self._normalise(np.zeros((C, 1, 1), np.float32)), images.shape
        ).copy()
        for old, new, (down, right) in zip(images, moved, shifts.tolist(), strict=True):
            if abs(down) < H and abs(right) < W:
                top, bottom, left, end = max(down, 0), min(down, 0), max(right, 0), min(right, 0)
                part = old[:, -bottom : H - top, -end : W - left]
                new[:, top : H + bottom, left : W + end] = part
        return moved

    def example(self, rng: np.random.Generator) -> Array:
        _, height, width = self.outputs("image")["image"].dims[1:]  # type: ignore[index]
        if self.resize != "none":
            height, width = rng.integers(4, 12, size=2)
        shape = [side if not isinstance(side, str) else 8 for side in (height, width)]
        return rng.integers(0, 256, (*shape, int(rng.choice([1, 3]))), dtype=np.uint8)

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", 3, 6, 8), "float")


def _is_batch(values: Any, channels: int, size: Size) -> TypeGuard[Array]:
    """Return whether values are one array of images of the right size, [B, H, W, C]."""
    if not isinstance(values, np.ndarray) or values.dtype != np.uint8 or values.ndim != 4:
        return False
    expected = zip(values.shape[1:3], size, strict=True)
    return (
        all(side in (None, found) for found, side in expected)
        and values.shape[3] == channels
        and 0 not in values.shape
    )


def _sample(pixels: Array) -> Array:
    """Return random thresholds in (0, 1] for pixels [..., H, W, C], float32 [..., C, H, W]."""
    images = pixels.reshape(-1, *pixels.shape[-3:])
    seeds = [zlib.crc32(image.tobytes()) for image in images]
    drawn = [np.random.default_rng(seed).random(images.shape[1:], np.float32) for seed in seeds]
    return np.moveaxis(1 - np.stack(drawn).reshape(pixels.shape), -1, -3)


def _to_pixels(value: Any) -> Array:
    """Return an image [H, W, 1 or 3], or raise DataError."""
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8:
        found = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
        raise DataError(f"expected an image as an array of uint8 [H, W, C], found {found}")
    pixels = value[..., None] if value.ndim == 2 else value
    if pixels.ndim != 3 or pixels.shape[-1] not in (1, 3) or 0 in pixels.shape:
        raise DataError(f"expected an image [H, W, 1 or 3], found shape {list(value.shape)}")
    return pixels
