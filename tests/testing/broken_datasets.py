"""Datasets that violate a law, and the valid one they are based on."""

import time
from itertools import count
from pathlib import Path

from zoo import DataError
from zoo.plugin import Examples, Field, TextLines
from zoo.testing.tiny_dataset import TinyDataset, TinyExamples


class UndeclaredField(TinyDataset):
    def fields(self):
        return {"source": Field("text")}


class OtherContent(TinyDataset):
    def fields(self):
        return {"target": Field("image")}


class NoExamples(TinyDataset):
    @classmethod
    def write_example(cls, folder):
        (folder / "tiny.txt").write_text("")
        return {"file": str(folder / "tiny.txt")}


class WrongSizes(TinyDataset):
    def open(self, *, evaluation=False) -> Examples:
        class Sized(TinyExamples):
            def sizes(self):
                return [1]

        return Sized(TextLines(self.file))


class Counted(TinyExamples):
    def __init__(self, lines):
        super().__init__(lines)
        self.calls = count()

    def __getitem__(self, index):
        return {"target": f"{self.lines[index]} {next(self.calls)}"}


class DependsOnOrder(TinyDataset):
    def open(self, *, evaluation=False) -> Examples:
        return Counted(TextLines(self.file))


class SharedPosition(TinyExamples):
    position = 0

    def __getitem__(self, index):
        self.position = index
        time.sleep(0.001)  # another thread runs
        return {"target": self.lines[self.position]}


class NotThreadSafe(TinyDataset):
    def open(self, *, evaluation=False) -> Examples:
        return SharedPosition(TextLines(self.file))


class Upper(TinyExamples):
    upper = False

    def __getitem__(self, index):
        text = self.lines[index]
        return {"target": text.upper() if self.upper else text}

    def __setstate__(self, state):
        self.__dict__.update(state, upper=True)


class ChangesWhenPickled(TinyDataset):
    def open(self, *, evaluation=False) -> Examples:
        return Upper(TextLines(self.file))


class SortedBatch(TinyDataset):
    def open(self, *, evaluation=False) -> Examples:
        class Sorted(TinyExamples):
            def read_many(self, indices):
                return {"target": [self.lines[index] for index in sorted(indices)]}

        return Sorted(TextLines(self.file))


class SameOrigin(TinyDataset):
    def open(self, *, evaluation=False) -> Examples:
        class Unnamed(TinyExamples):
            def origin(self, index):
                return str(self.lines.path)

        return Unnamed(TextLines(self.file))


class OtherError(TinyDataset):
    def open(self, *, evaluation=False) -> Examples:
        Path(self.file).read_text()
        return super().open(evaluation=evaluation)


class OpensInConstructor(TinyDataset):
    def __init__(self, *, file: str) -> None:
        super().__init__(file=file)
        if file != "tiny":
            TextLines(file)


class UnnamedFile(TinyDataset):
    def open(self, *, evaluation=False) -> Examples:
        if not Path(self.file).exists():
            raise DataError("a file is missing")
        return super().open(evaluation=evaluation)


class WritesIndex(TinyDataset):
    def open(self, *, evaluation=False) -> Examples:
        Path(f"{self.file}.index").write_text("0")
        return super().open(evaluation=evaluation)


class NoFields(TinyDataset):
    """The lines of a text file.

    Args:
        file: the text file.
    """


# (law, broken component, valid component)
BROKEN = [
    ("documented", NoFields, TinyDataset),
    ("declared-fields", UndeclaredField, TinyDataset),
    ("declared-fields", OtherContent, TinyDataset),
    ("declared-fields", NoExamples, TinyDataset),
    ("declared-fields", WrongSizes, TinyDataset),
    ("same-examples", DependsOnOrder, TinyDataset),
    ("same-examples", NotThreadSafe, TinyDataset),
    ("same-examples", ChangesWhenPickled, TinyDataset),
    ("same-examples", SortedBatch, TinyDataset),
    ("distinct-origins", SameOrigin, TinyDataset),
    ("missing-files", OtherError, TinyDataset),
    ("missing-files", OpensInConstructor, TinyDataset),
    ("missing-files", UnnamedFile, TinyDataset),
    ("unchanged-files", WritesIndex, TinyDataset),
]
