"""Word vectors: the files other programs write, and questions to them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from zoo.errors import ZooError, suggest, truncate
from zoo.files import atomic_write, os_error_message

if TYPE_CHECKING:
    from torch import Tensor

Format = Literal["word2vec", "word2vec-binary", "glove"]
FORMATS: tuple[Format, ...] = ("word2vec", "word2vec-binary", "glove")
_MAX_WORD_BYTES = 10_000
_MAX_LINE_BYTES = 1_000_000
_MAX_DIGITS = 18
_BOM = b"\xef\xbb\xbf"  # some editors begin UTF-8 with it


@dataclass(frozen=True)
class Vectors:
    """Words with a vector each.

    Shapes:
        matrix [N, D], float32, a row a word.

    >>> animals = Vectors(["cat", "dog", "car"], [[1, 0], [1, 0.1], [0, 1]])
    >>> animals.similar("cat", 1)[0][0]
    'dog'
    """

    words: Sequence[str]
    matrix: NDArray[np.float32]
    index: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        matrix = np.ascontiguousarray(self.matrix, dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[0] != len(self.words):
            raise ZooError(f"{len(self.words)} words cannot have vectors {list(matrix.shape)}")
        if not len(self.words):
            raise ZooError("the vocabulary is empty: there is no word to have a vector")
        index: dict[str, int] = {}
        for row, word in enumerate(self.words):
            if index.setdefault(word, row) != row:
                raise ZooError(f"the word '{truncate(word, 100)}' has two vectors")
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "index", index)

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.matrix[self._row_of(word)]
        return vector

    def similarity(self, one: str, other: str) -> float:
        """The cosine of the angle between two words."""
        return float(self._normalize(self[one]) @ self._normalize(self[other]))

    def most_similar(self, word: str, count: int = 10) -> list[tuple[str, float]]:
        """The words nearest in angle, nearest first."""
        return self._nearest(self._normalize(self[word]), {word}, count)

    def analogy(self, a: str, b: str, c: str, count: int = 10) -> list[tuple[str, float]]:
        """What is to c as b is to a: nearest to b - a + c, those three left out."""
        sum_ = self._normalize(self[b]) - self._normalize(self[a]) + self._normalize(self[c])
        return self._nearest(self._normalize(sum_), {a, b, c}, count)

    def fill(self, table: Tensor, words: Sequence[str | None]) -> int:
        """Put the vectors of known words into the rows of a table; how many were known.

        table [V, D]: row i belongs to words[i]; None, or a word unknown here, leaves it as it is.
        """
        import torch

        if list(table.shape) != [len(words), self.dim]:
            raise ZooError(
                f"vectors of width {self.dim} for {len(words)} words do not fit a table "
                f"{list(table.shape)}"
            )
        rows = [row for row, word in enumerate(words) if word in self.index]
        found = self.matrix[[self.index[str(words[row])] for row in rows]]
        with torch.no_grad():
            table[torch.tensor(rows, dtype=torch.long)] = torch.from_numpy(found).to(table)
        return len(rows)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Vectors:
        """The vectors of a file: word2vec text or binary, GloVe or fastText text."""
        try:
            with open(path, "rb") as file:
                words, matrix = _read(file, os.fstat(file.fileno()).st_size)
            first = {word: row for row, word in reversed(list(enumerate(words)))}
            if len(first) == len(words):
                return cls(words, matrix)
            kept = sorted(first.values())  # real files repeat words; the first is meant
            return cls([words[row] for row in kept], matrix[kept])
        except OSError as error:
            raise ZooError(f"{path} cannot be read: {os_error_message(error)}") from None
        except ZooError as error:
            raise ZooError(f"{path} is no sound vector file: {error}") from None

    def write(self, path: str | os.PathLike[str], file_format: Format = "word2vec") -> None:
        """Write a file other programs read; whole or not at all."""
        if file_format not in FORMATS:
            raise ZooError(f"no vector format named '{file_format}'{suggest(file_format, FORMATS)}")
        bad = next((word for word in self.words if not word or set(word) & set(" \n\t")), None)
        if bad is not None:
            raise ZooError(f"the word {bad!r} holds a blank, which vector files cannot hold")
        try:
            with (
                atomic_write(Path(os.path.realpath(path))) as temp_path,
                open(temp_path, "wb") as file,
            ):
                for piece in self._encode_rows(file_format):
                    file.write(piece)
        except OSError as error:
            raise ZooError(f"{path} could not be written: {os_error_message(error)}") from None

    def _encode_rows(self, file_format: Format) -> Iterator[bytes]:
        if file_format != "glove":
            yield f"{len(self)} {self.dim}\n".encode()
        for word, row in zip(self.words, self.matrix, strict=True):
            if file_format == "word2vec-binary":
                yield word.encode() + b" " + row.astype("<f4").tobytes() + b"\n"
            else:  # nine digits bring every float32 back
                yield f"{word} {' '.join(f'{x:.9g}' for x in row.tolist())}\n".encode()

    def _row_of(self, word: str) -> int:
        if word not in self.index:
            close = [other for other in self.words if other.lower() == word.lower()]
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise ZooError(
                f"the word '{truncate(word, 100)}' is none of the {len(self):,} here{hint}"
            )
        return self.index[word]

    def _nearest(
        self, unit: NDArray[np.float32], exclude: Iterable[str], count: int
    ) -> list[tuple[str, float]]:
        lengths = np.linalg.norm(self.matrix, axis=1)
        cosines = self.matrix @ unit / np.where(lengths > 0, lengths, 1)
        cosines[[self._row_of(word) for word in exclude]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:count]
        return [(self.words[i], float(cosines[i])) for i in best if np.isfinite(cosines[i])]

    @staticmethod
    def _normalize(vector: NDArray[np.float32]) -> NDArray[np.float32]:
        length = np.linalg.norm(vector)
        unit: NDArray[np.float32] = vector / length if length > 0 else vector
        return unit


def _read(file: BinaryIO, size: int) -> tuple[list[str], NDArray[np.float32]]:
    begin = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    file.seek(begin)
    fields = file.readline(_MAX_LINE_BYTES).split()
    if not fields:
        raise ZooError("it is empty" if not size else "its first line is empty")
    if len(fields) != 2 or not all(part.isdigit() for part in fields):
        file.seek(begin)
        return _read_text_rows(file, None, len(fields) - 1, first_line=1)  # GloVe has no header
    if max(map(len, fields)) > _MAX_DIGITS:
        raise ZooError(f"its header holds a number of over {_MAX_DIGITS} digits")
    count, dim = int(fields[0]), int(fields[1])
    if not count or not dim:
        raise ZooError(f"its header promises {count} words of width {dim}")
    if count * (dim + 1) > size:
        raise ZooError(
            f"its header promises {count:,} words of width {dim:,}, too many for {size:,} bytes"
        )
    at = file.tell()
    held = _count_numbers(file.readline(_MAX_LINE_BYTES))
    file.seek(at)
    if not held:
        return _read_binary(file, count, dim)
    if held != dim:
        raise ZooError(f"its header promises words of width {dim:,}, but line 2 has {held:,}")
    return _read_text_rows(file, count, dim, first_line=2)


def _count_numbers(line: bytes) -> int:
    """How many numbers end a line of text; 0 if it is none."""
    try:
        fields = line.decode("utf-8").rstrip().split(" ")[1:]
    except UnicodeDecodeError:
        return 0
    return sum(1 for _ in takewhile(_is_number, reversed(fields)))


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_text_rows(
    file: BinaryIO, count: int | None, dim: int, *, first_line: int
) -> tuple[list[str], NDArray[np.float32]]:
    if dim < 1:
        raise ZooError("line 1 has a word and no numbers")
    words, rows = [], []
    for number, line in enumerate(_iter_lines(file), first_line):
        try:
            # Some files have words with blanks in them: the numbers are the last fields.
            fields = line.decode("utf-8").rstrip().split(" ")
            with np.errstate(over="ignore"):  # what is too large is not finite
                word, row = " ".join(fields[:-dim]), np.array(fields[-dim:], dtype=np.float32)
        except UnicodeDecodeError:
            raise ZooError(f"line {number} is not UTF-8") from None
        except ValueError:
            raise ZooError(f"line {number} should hold a word and {dim} numbers") from None
        if not word or len(row) != dim or not np.isfinite(row).all():
            raise ZooError(f"line {number} should hold a word and {dim} finite numbers")
        words.append(word)
        rows.append(row)
    if count is not None and len(words) != count:
        raise ZooError(f"its header promises {count:,} words, but it holds {len(words):,}")
    return words, np.stack(rows)


def _iter_lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(_MAX_LINE_BYTES):
        if line.strip():
            yield line


def _read_binary(file: BinaryIO, count: int, dim: int) -> tuple[list[str], NDArray[np.float32]]:
    words: list[str] = []
    matrix = np.empty((count, dim), dtype=np.float32)
    for row in range(count):
        word = _read_word(file, row)
        numbers = file.read(4 * dim)
        if len(numbers) != 4 * dim:
            raise ZooError(f"it ends in the vector of word {row + 1:,} of {count:,}")
        matrix[row] = np.frombuffer(numbers, dtype="<f4")
        words.append(word)
    if not np.isfinite(matrix).all():
        raise ZooError("it holds numbers that are not finite")
    if any(_iter_lines(file)):
        raise ZooError(f"it goes on after the {count:,} words its header promises")
    return words, matrix


def _read_word(file: BinaryIO, row: int) -> str:
    letters = bytearray()
    while (letter := file.read(1)) != b" ":
        if not letter or len(letters) > _MAX_WORD_BYTES:
            raise ZooError(f"it ends, or never ends, in word {row + 1:,}")
        letters += letter
    try:
        word = letters.lstrip(b"\n").decode("utf-8")
    except UnicodeDecodeError:
        raise ZooError(f"word {row + 1:,} is not UTF-8") from None
    if not word:
        raise ZooError(f"word {row + 1:,} has no letters")
    return word


def vectors_from_model(model: Any, side: str = "source") -> Vectors:
    """What a model's embedding says of each word of its tokenizer."""
    import torch

    from zoo.generation.tokenizer import Tokenizer

    if not model.tokenizer or side not in model.tokenizer:
        raise ZooError(f"the model carries no {side} tokenizer, so its vectors have no words")
    known = Tokenizer(model.tokenizer[side]).backend.get_vocab()
    words = sorted(known, key=known.__getitem__)
    embedding = model.get_embedding(side)
    ids = torch.tensor([known[word] for word in words], device=next(embedding.parameters()).device)
    with torch.no_grad():
        matrix = embedding(ids[None])[0].float().cpu().numpy()
    return Vectors(words, matrix)
