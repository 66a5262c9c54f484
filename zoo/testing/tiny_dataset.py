"""A minimal dataset, for the slots of components under test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo.data.text_lines import TextLines
from zoo.interfaces import Dataset, Example, Examples, Field


class TinyExamples(Examples):
    """The lines of a file."""

    def __init__(self, lines: TextLines) -> None:
        self.lines = lines

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Example:
        return {"target": self.lines[index]}

    def origin(self, index: int) -> str:
        return self.lines.origin(index)


class TinyDataset(Dataset):
    """The lines of a text file.

    Args:
        file: the text file.

    Fields:
        target: text.
    """

    name: ClassVar[str] = "tiny"

    def __init__(self, *, file: str) -> None:
        self.file = file

    def fields(self) -> Mapping[str, Field]:
        return {"target": Field("text")}

    def open(self, *, evaluation: bool = False) -> Examples:
        return TinyExamples(TextLines(self.file))

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        (folder / "tiny.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
        return {"file": str(folder / "tiny.txt")}
