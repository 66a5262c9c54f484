"""Dataset 'conll'."""

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo import DataError
from zoo.plugin import Dataset, Example, Examples, Field, TextLines, truncate

_FIELDS = {"source": Field("texts"), "target": Field("labels")}


class Conll(Dataset):
    """Words with tags, one word per line, with empty lines between sentences, as of CoNLL-2003.

    The columns of a line are separated by tabs or spaces. Lines that start with ``-DOCSTART-``, and
    comments (``# ``) before the first word of a sentence, are left out. The file may be
    compressed (``.gz``, ``.xz``, ``.bz2``).

    Args:
        file: the file.
        word: the column of the word, from 0.
        tag: the column of the tag, from 0; negative numbers count from the last column.

    Fields:
        source: texts, the words. target: labels, their tags.
    """

    name: ClassVar[str] = "conll"

    def __init__(self, *, file: str, word: int = 0, tag: int = -1) -> None:
        self.file = file
        self.word = word
        self.tag = tag

    def fields(self) -> Mapping[str, Field]:
        return _FIELDS

    def open(self, *, evaluation: bool = False) -> Examples:
        return _Sentences(TextLines(self.file), self.word, self.tag)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        text = (
            "-DOCSTART- O\n\nAda NNP B-PER\nLovelace NNP I-PER\nwrote VBD O\n\n\nParis NNP B-LOC\n"
        )
        (folder / "a.conll").write_text(text, encoding="utf-8")
        return {"file": str(folder / "a.conll")}


class _Sentences(Examples):
    def __init__(self, lines: TextLines, word: int, tag: int) -> None:
        self.lines = lines
        self.columns = word, tag
        self.starts, self.ends = array("Q"), array("Q")
        inside = False
        for number, line in enumerate(lines.raw()):
            is_comment = line.startswith(b"# ") and not inside  # inside, the word is '#'
            is_word = bool(line.strip()) and not is_comment and not line.startswith(b"-DOCSTART-")
            if is_word and not inside:
                self.starts.append(number)
            if inside and not is_word:
                self.ends.append(number)
            inside = is_word
        if inside:
            self.ends.append(number + 1)
        if not self.starts:
            raise DataError("the file has no words", str(lines.path))

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> Example:
        words, tags = [], []
        first = self.starts[index]
        for number, line in enumerate(self.lines.read(first, self.ends[index]), first):
            cells = line.split("\t") if "\t" in line else line.split()
            try:
                word, tag = (cells[column].strip() for column in self.columns)
            except IndexError:
                word = tag = ""
            if not word or not tag or len(cells) < 2:
                shown = truncate(repr(line), 60)
                raise DataError(f"expected a word and its tag, found {shown}", self._origin(number))
            words.append(word)
            tags.append(tag)
        return {"source": words, "target": tags}

    def origin(self, index: int) -> str:
        return self._origin(self.starts[index])

    def _origin(self, line: int) -> str:
        return self.lines.origin(line)
