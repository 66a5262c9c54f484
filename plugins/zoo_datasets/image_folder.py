"""Dataset 'image-folder'."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from zoo import DataError
from zoo.plugin import Dataset, Example, Examples, Field, expand_path, read_image
from zoo_datasets.folders import list_classes, read_paths

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


class ImageFolder(Dataset):
    """Images with a label: ``FOLDER/CLASS/*.png``, or a folder of images and a file of labels.

    Reads PNG, JPEG, BMP, GIF, WebP, TIFF and PPM files, also in folders of the folder of a class.
    Other files are ignored. The order is that of the sorted names, or of the lines of ``labels``.

    Args:
        folder: a folder with one folder of images per class; with ``labels``, a folder of images.
        labels: text file with lines ``name<TAB>label``; the label of each image in ``folder``.

    Fields:
        source: image. target: label, the name of the folder or the text in ``labels``.
    """

    name: ClassVar[str] = "image-folder"

    def __init__(self, *, folder: str, labels: str | None = None) -> None:
        self.folder = folder
        self.labels = labels

    def fields(self) -> Mapping[str, Field]:
        return {"source": Field("image"), "target": Field("label")}

    def open(self, *, evaluation: bool = False) -> Examples:
        folder = expand_path(self.folder)
        if self.labels is not None:
            return _Images(read_paths(self.labels, folder))
        found = list_classes(folder, SUFFIXES)
        if not found:
            raise DataError("no folder with images; expected FOLDER/CLASS/*.png", str(folder))
        return _Images(found)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        for number, label in enumerate(("cat", "dog")):
            (folder / label).mkdir()
            pixels = np.full((2, 3, 3), 90 * number, np.uint8)
            header = f"P6 {pixels.shape[1]} {pixels.shape[0]} 255\n".encode()
            (folder / label / "a.ppm").write_bytes(header + pixels.tobytes())
        return {"folder": str(folder)}


class _Images(Examples):
    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        path, label = self.rows[index]
        return {"source": read_image(path), "target": label}

    def decodes_files(self) -> bool:
        return True

    def origin(self, index: int) -> str:
        return self.rows[index][0]
