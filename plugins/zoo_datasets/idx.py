"""Dataset 'idx'."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from zoo import DataError
from zoo.plugin import Array, Dataset, Example, Examples, Field, Values
from zoo_datasets.array_rows import ArrayRows, open_idx


class Idx(Dataset):
    """Images and labels in IDX files, the format of MNIST.

    Files may be compressed (``.gz``, ``.xz``, ``.bz2``).

    Args:
        images: file of images, uint8 [N, H, W].
        labels: file of labels, integers [N].

    Fields:
        source: image [H, W, 1]. target: label, an integer.
    """

    name: ClassVar[str] = "idx"

    def __init__(self, *, images: str, labels: str) -> None:
        self.images = images
        self.labels = labels

    def fields(self) -> Mapping[str, Field]:
        return {"source": Field("image"), "target": Field("label")}

    def open(self, *, evaluation: bool = False) -> Examples:
        return _Digits(open_idx(self.images), open_idx(self.labels))

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        images = bytes(range(2 * 3 * 4))
        (folder / "images").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 2, 3, 4) + images)
        (folder / "labels").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 2) + bytes([7, 0]))
        return {"images": str(folder / "images"), "labels": str(folder / "labels")}


class _Digits(Examples):
    def __init__(self, images: ArrayRows, labels: ArrayRows) -> None:
        self.images = images
        self.labels = labels
        if len(images.shape) != 3 or images.dtype != np.uint8:
            raise DataError(
                f"expected images, uint8 [N, H, W], but found {images.dtype} {list(images.shape)}",
                str(images.path),
            )
        if 0 in images.shape:
            raise DataError(f"the array {list(images.shape)} has no pixels", str(images.path))
        if len(labels.shape) != 1 or labels.dtype.kind not in "iu":
            raise DataError(
                f"expected labels, integers [N], but found {labels.dtype} {list(labels.shape)}",
                str(labels.path),
            )
        if len(images) != len(labels):
            raise DataError(
                f"{images.path} has {len(images):,} images, but {labels.path} has "
                f"{len(labels):,} labels"
            )

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Example:
        return {"source": self.images[index][..., None], "target": int(self.labels[index])}

    def read_many(self, indices: Array) -> Mapping[str, Values]:
        images, labels = self.images.read(indices), self.labels.read(indices)
        return {"source": images[..., None], "target": labels.tolist()}

    def origin(self, index: int) -> str:
        return f"{self.images.path}[{index}]"
