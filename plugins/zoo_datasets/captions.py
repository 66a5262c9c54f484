"""Dataset 'captions'."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import pydantic

from zoo import DataError, ZooError
from zoo.plugin import (
    Array,
    Dataset,
    Example,
    Examples,
    Field,
    FileBytes,
    TextLines,
    Values,
    expand_path,
    read_image,
)
from zoo_datasets.array_rows import ArrayRows, open_npy

_NUMBER = re.compile(r"#\d+$")
Side = Annotated[int, pydantic.Field(ge=1)]


class Captions(Dataset):
    """Images with one or more captions each.

    A line of ``captions`` is ``name<TAB>caption``, with more captions after further tabs, or
    ``name#0<TAB>caption``, with further captions of the image on other lines. In training, each
    pair of an image and a caption is an example; in evaluation, each image with all its captions.

    Args:
        images: folder of image files; or, with the images in the order in which ``captions`` names
            them, a ``.npy`` file, uint8 [N, H, W] or [N, H, W, C], or a list of sheets: image files
            that consist of tiles, row by row.
        captions: text file with names and captions. For a ``.npy`` file, a line without a tab is
            the caption of the image with the number of the line, such as the text in the image.
        tile: height and width of the tiles of the sheets.

    Fields:
        source: image. target: text.
    """

    name: ClassVar[str] = "captions"

    def __init__(
        self,
        *,
        images: str | list[str],
        captions: str,
        tile: tuple[Side, Side] | None = None,
    ) -> None:
        if isinstance(images, list) != (tile is not None):
            raise ZooError("a list of sheets needs 'tile', and 'tile' a list of sheets")
        self.images = images
        self.captions = captions
        self.tile = tile

    def fields(self) -> Mapping[str, Field]:
        return {"source": Field("image"), "target": Field("text")}

    def open(self, *, evaluation: bool = False) -> Examples:
        lines = TextLines(self.captions)
        captions = _read_captions(lines, numbered=_is_array(self.images))
        names = list(dict.fromkeys(caption.name for caption in captions))
        images = _open_images(self.images, self.tile, names, str(lines.path))
        if evaluation:
            groups: dict[str, list[_Caption]] = {name: [] for name in names}
            for caption in captions:
                groups[caption.name].append(caption)
            return _Captions(images, list(groups.values()))
        return _Captions(images, [[caption] for caption in captions], single=True)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        np.save(folder / "images.npy", np.arange(36, dtype=np.uint8).reshape(2, 2, 3, 3))
        text = "1.jpg\ta cat sits\ta cat\n2.jpg\ta dog runs\n"
        (folder / "captions.tsv").write_text(text, encoding="utf-8")
        return {"images": str(folder / "images.npy"), "captions": str(folder / "captions.tsv")}


class _Caption(NamedTuple):
    name: str
    text: str
    origin: str


def _is_array(images: str | list[str]) -> bool:
    return isinstance(images, str) and FileBytes.suffix_of(expand_path(images)) == ".npy"


def _read_captions(lines: TextLines, *, numbered: bool) -> list[_Caption]:
    found = []
    for index, line in enumerate(lines):
        name, *texts = (
            [f"line {index + 1}", line] if numbered and "\t" not in line else line.split("\t")
        )
        if not name.strip() or not texts or not all(text.strip() for text in texts):
            raise DataError(
                "expected a name and one or more captions, separated by tabs", lines.origin(index)
            )
        for number, text in enumerate(texts):
            where = f", caption {number + 1}" if len(texts) > 1 else ""
            name = _NUMBER.sub("", name.strip())
            found.append(_Caption(name, text.strip(), lines.origin(index) + where))
    if not found:
        raise DataError("the file has no captions", str(lines.path))
    return found


class _ImageFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, names: Sequence[str]) -> Values:
        """Return images [H, W, C]."""
        return [read_image(self.folder / name) for name in names]


class _ImageRows:
    def __init__(self, rows: ArrayRows | Array, names: Sequence[str]) -> None:
        self.rows = rows
        self.index = {name: index for index, name in enumerate(names)}

    def read(self, names: Sequence[str]) -> Values:
        """Return images [B, H, W, C]."""
        indices = np.array([self.index[name] for name in names])
        rows = self.rows
        images = rows.read(indices) if isinstance(rows, ArrayRows) else rows[indices]
        return images if images.ndim == 4 else images[..., None]


def _open_images(
    path: str | list[str], tile: tuple[int, int] | None, names: Sequence[str], captions: str
) -> _ImageFiles | _ImageRows:
    if isinstance(path, list):
        assert tile is not None
        tiles = np.concatenate([_read_tiles(expand_path(sheet), tile) for sheet in path])
        if len(tiles) < len(names):
            raise DataError(
                f"the sheets have {len(tiles):,} tiles, but {captions} names {len(names):,} images",
                str(expand_path(path[-1])),
            )
        return _ImageRows(tiles, names)
    folder = expand_path(path)
    if not _is_array(path):
        if not folder.is_dir():
            raise DataError("no such folder", str(folder))
        return _ImageFiles(folder)
    rows = open_npy(path)
    if rows.dtype != np.uint8 or not (len(rows.shape) == 3 or rows.shape[3:] in ((1,), (3,))):
        raise DataError(
            f"expected images, uint8 [N, H, W] or [N, H, W, C], but found {rows.dtype} "
            f"{list(rows.shape)}",
            str(rows.path),
        )
    if len(rows) != len(names):
        raise DataError(
            f"{rows.path} has {len(rows):,} images, but {captions} names {len(names):,}"
        )
    return _ImageRows(rows, names)


def _read_tiles(sheet: Path, tile: tuple[int, int]) -> Array:
    """Return the tiles [N, H, W, C] of a sheet, row by row."""
    pixels, (h, w) = read_image(sheet), tile
    rows, columns = pixels.shape[0] // h, pixels.shape[1] // w
    if pixels.shape[:2] != (rows * h, columns * w) or not pixels.size:
        size = f"{pixels.shape[0]} x {pixels.shape[1]}"
        raise DataError(f"a sheet of {size} pixels does not consist of {h} x {w} tiles", str(sheet))
    tiles: Array = pixels.reshape(rows, h, columns, w, -1).swapaxes(1, 2)
    return tiles.reshape(rows * columns, h, w, -1)


class _Captions(Examples):
    def __init__(
        self,
        images: _ImageFiles | _ImageRows,
        groups: Sequence[Sequence[_Caption]],
        *,
        single: bool = False,
    ) -> None:
        self.images = images
        self.groups = groups
        self.single = single

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, index: int) -> Example:
        return {name: values[0] for name, values in self.read_many(np.array([index])).items()}

    def read_many(self, indices: Array) -> Mapping[str, Values]:
        groups = [self.groups[index] for index in indices.tolist()]
        return {
            "source": self.images.read([group[0].name for group in groups]),
            "target": [
                group[0].text if self.single else [caption.text for caption in group]
                for group in groups
            ],
        }

    def decodes_files(self) -> bool:
        return isinstance(self.images, _ImageFiles)

    def origin(self, index: int) -> str:
        return self.groups[index][0].origin
