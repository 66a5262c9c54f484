"""Dataset 'plain-text'."""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pydantic

from zoo import DataError, ZooError
from zoo.plugin import Dataset, Example, Examples, Field, TextLines

Unit = Literal["line", "paragraph", "document"]
Share = Annotated[float, pydantic.Field(ge=0, le=1)]


class PlainText(Dataset):
    """Texts of one or more files, for language models.

    Files may be compressed (``.gz``, ``.xz``, ``.bz2``). Empty lines separate paragraphs and are
    not examples, unless ``empty`` is set.

    Args:
        files: a text file, or several.
        field: name of the field with the texts.
        unit: what an example is: a line, a paragraph or the whole file.
        empty: whether empty lines are examples, if the unit is a line.
        part: the part of each file that is used, if the unit is the whole file: the shares of its
            characters before and after which it is cut off.

    Fields:
        target (or the value of ``field``): text.
    """

    name: ClassVar[str] = "plain-text"

    def __init__(
        self,
        *,
        files: str | Annotated[list[str], pydantic.Field(min_length=1)],
        field: str = "target",
        unit: Unit = "line",
        empty: bool = False,
        part: tuple[Share, Share] = (0.0, 1.0),
    ) -> None:
        if empty and unit != "line":
            raise ZooError(f"empty: true needs unit: line, but unit is {unit}")
        if part != (0.0, 1.0) and unit != "document":
            raise ZooError(f"part needs unit: document, but unit is {unit}")
        if part[0] >= part[1]:
            raise ZooError(f"part is {list(part)}, but the first share must be less than the other")
        self.files = [files] if isinstance(files, str) else files
        self.field = field
        self.unit = unit
        self.empty = empty
        self.part = part

    def fields(self) -> Mapping[str, Field]:
        return {self.field: Field("text")}

    def open(self, *, evaluation: bool = False) -> Examples:
        units = [_Units(TextLines(file), self) for file in self.files]
        return _Texts(units, self.field)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        (folder / "a.txt").write_text("one\ntwo\n\nthree\n", encoding="utf-8")
        (folder / "b.txt").write_text("four\n", encoding="utf-8")
        return {"files": [str(folder / "a.txt"), str(folder / "b.txt")]}


class _Units:
    """The lines, paragraphs or the document of one file: ranges of lines."""

    def __init__(self, lines: TextLines, dataset: PlainText) -> None:
        self.lines = lines
        self.starts = array("Q")
        self.unit = unit = dataset.unit
        self.part = dataset.part
        previous_empty = True
        for index, line in enumerate(lines.raw()):
            empty = not line.strip()
            first = unit == "line" or (previous_empty if unit == "paragraph" else not self.starts)
            if (not empty and first) or dataset.empty:
                self.starts.append(index)
            previous_empty = empty
        if not self.starts:
            raise DataError("the file has no text", str(lines.path))

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, index: int) -> str:
        start = self.starts[index]
        if self.unit == "line":
            line = self.lines[start]
            return line if line.strip() else ""
        stop = self.starts[index + 1] if index + 1 < len(self) else len(self.lines)
        lines = list(self.lines.read(start, stop))
        while not lines[-1].strip():
            lines.pop()
        text = "\n".join(lines)
        first, last = (round(share * len(text)) for share in self.part)
        return text[first:last]

    def origin(self, index: int) -> str:
        return self.lines.origin(self.starts[index])


class _Texts(Examples):
    def __init__(self, files: Sequence[_Units], field: str) -> None:
        self.files = files
        self.field = field
        self.ends = list(accumulate(len(units) for units in files))

    def __len__(self) -> int:
        return self.ends[-1]

    def __getitem__(self, index: int) -> Example:
        units, local = self._locate(index)
        return {self.field: units.text(local)}

    def origin(self, index: int) -> str:
        units, local = self._locate(index)
        return units.origin(local)

    def _locate(self, index: int) -> tuple[_Units, int]:
        file = bisect_right(self.ends, index)
        return self.files[file], index - (self.ends[file - 1] if file else 0)
