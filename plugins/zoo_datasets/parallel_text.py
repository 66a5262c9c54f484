"""Dataset 'parallel-text'."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pydantic

from zoo import DataError, ZooError
from zoo.plugin import Dataset, Example, Examples, Field, TextLines

Column = Annotated[int, pydantic.Field(ge=0)]


class ParallelText(Dataset):
    """Pairs of texts, such as sentences and their translations: line n of two files, or two columns
    of one file.

    Files may be compressed (``.gz``, ``.xz``, ``.bz2``). An empty line raises DataError.

    Args:
        source: text file with one source per line.
        target: text file with one target per line; or several, which are alternative references in
            evaluation. In training, the first is used.
        file: file with both texts in each line, in place of ``source`` and ``target``.
        columns: columns of source and target in ``file``, from 0.
        delimiter: text between the columns of ``file``, by default a tab.
        merge: in evaluation, lines of ``file`` with the same source are one example with several
            references, such as the pronunciations of a word.

    Fields:
        source, target: text.
    """

    name: ClassVar[str] = "parallel-text"
    test_params: ClassVar[Mapping[str, Any]] = {"source": "a.en", "target": "a.de"}

    def __init__(
        self,
        *,
        source: str | None = None,
        target: str | list[str] | None = None,
        file: str | None = None,
        columns: tuple[Column, Column] = (0, 1),
        delimiter: Annotated[str, pydantic.Field(min_length=1)] = "\t",
        merge: bool = False,
    ) -> None:
        if (source is None) != (not target) or (source is None) == (file is None):
            raise ZooError("set either 'source' and 'target', or 'file'")
        self.source = source
        self.targets = [target] if isinstance(target, str) else list(target or ())
        self.file = file
        self.columns = columns
        self.delimiter = delimiter
        self.merge = merge

    def fields(self) -> Mapping[str, Field]:
        return {"source": Field("text"), "target": Field("text")}

    def open(self, *, evaluation: bool = False) -> Examples:
        lines = TextLines(self.file or self.source or "")
        if not len(lines):
            raise DataError("the file has no lines", str(lines.path))
        if self.file is not None:
            pairs = _Columns(lines, self.columns, self.delimiter)
            return _Merged(pairs) if self.merge and evaluation else pairs
        targets = self.targets if evaluation else self.targets[:1]
        return _Pairs(lines, [TextLines(target) for target in targets])

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        (folder / "a.en").write_text("a cat\na dog runs\n", encoding="utf-8")
        (folder / "a.de").write_text("eine Katze\nein Hund läuft\n", encoding="utf-8")
        return {"source": str(folder / "a.en"), "target": str(folder / "a.de")}


class _Pairs(Examples):
    def __init__(self, source: TextLines, targets: Sequence[TextLines]) -> None:
        self.source = source
        self.targets = targets
        for target in targets:
            if len(target) != len(source):
                raise DataError(
                    f"{source.path} has {len(source):,} lines, but {target.path} has "
                    f"{len(target):,}; each target must be on the line of its source"
                )

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Example:
        source = self.source.require(index)
        targets = [target.require(index) for target in self.targets]
        return {"source": source, "target": targets[0] if len(targets) == 1 else targets}

    def origin(self, index: int) -> str:
        return self.source.origin(index)


class _Columns(Examples):
    def __init__(self, lines: TextLines, columns: tuple[int, int], delimiter: str) -> None:
        self.lines = lines
        self.columns = columns
        self.delimiter = delimiter

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Example:
        cells = self.lines.require(index).split(self.delimiter)
        texts = {}
        for field, column in zip(("source", "target"), self.columns, strict=True):
            if column >= len(cells):
                between = "tabs" if self.delimiter == "\t" else repr(self.delimiter)
                raise DataError(
                    f"the line has {len(cells)} columns, separated by {between}, but column "
                    f"{column} (from 0) is '{field}'; set 'columns' or 'delimiter'",
                    self.origin(index),
                )
            if not cells[column].strip():
                raise DataError(f"column {column} ('{field}') is empty", self.origin(index))
            texts[field] = cells[column]
        return texts

    def origin(self, index: int) -> str:
        return self.lines.origin(index)


class _Merged(Examples):
    """Pairs with the same source as one example."""

    def __init__(self, pairs: _Columns) -> None:
        self.pairs = pairs
        rows: dict[str, list[int]] = {}
        for index in range(len(pairs)):
            rows.setdefault(pairs[index]["source"], []).append(index)
        self.rows = list(rows.values())

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        found = [self.pairs[row] for row in self.rows[index]]
        return {"source": found[0]["source"], "target": [pair["target"] for pair in found]}

    def origin(self, index: int) -> str:
        return self.pairs.origin(self.rows[index][0])
