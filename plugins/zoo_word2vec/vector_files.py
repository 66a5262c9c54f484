"""Read and write word vectors in the formats of word2vec, GloVe and fastText."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from zoo import ZooError
from zoo.plugin import atomic_write, suggest

Format = Literal["word2vec", "word2vec-binary", "glove"]
FORMATS: tuple[Format, ...] = ("word2vec", "word2vec-binary", "glove")
Rows = tuple[list[str], NDArray[np.float32]]
"""Words, and a matrix with one row for each."""

_MAX_WORD_BYTES = 10_000
_MAX_LINE_BYTES = 1_000_000
_MAX_DIGITS = 18
_BOM = b"\xef\xbb\xbf"  # a byte order mark, which some editors put before UTF-8


def read_vectors(path: str | os.PathLike[str]) -> Rows:
    """Return the words and vectors of a file, whose format is detected."""
    try:
        with open(path, "rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise ZooError(f"{path} cannot be read: {_describe(error)}") from None
    except ZooError as error:
        raise ZooError(f"{path} is not a valid vector file: {error}") from None


def write_vectors(
    path: str | os.PathLike[str],
    words: Sequence[str],
    matrix: NDArray[np.float32],
    file_format: Format,
) -> None:
    """Write words and vectors to a file, atomically."""
    if file_format not in FORMATS:
        raise ZooError(f"no vector format named '{file_format}'{suggest(file_format, FORMATS)}")
    invalid = next((word for word in words if not word or set(word) & set(" \n\t")), None)
    if invalid is not None:
        raise ZooError(
            f"the word {invalid!r} is empty or contains white space; vector files cannot store it"
        )
    try:
        with atomic_write(Path(path)) as temp_path, open(temp_path, "wb") as file:
            for row in _encode_rows(words, matrix, file_format):
                file.write(row)
    except OSError as error:
        raise ZooError(f"{path} cannot be written: {_describe(error)}") from None


def _describe(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _encode_rows(
    words: Sequence[str], matrix: NDArray[np.float32], file_format: Format
) -> Iterator[bytes]:
    if file_format != "glove":
        yield f"{len(words)} {matrix.shape[1]}\n".encode()
    for word, row in zip(words, matrix, strict=True):
        if file_format == "word2vec-binary":
            yield word.encode() + b" " + row.astype("<f4").tobytes() + b"\n"
        else:  # nine digits restore every float32
            yield f"{word} {' '.join(f'{x:.9g}' for x in row.tolist())}\n".encode()


def _read(file: BinaryIO, size: int) -> Rows:
    start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    file.seek(start)
    fields = file.readline(_MAX_LINE_BYTES).split()
    if not fields:
        raise ZooError("the file is empty" if not size else "line 1 is empty")
    if len(fields) != 2 or not all(part.isdigit() for part in fields):
        file.seek(start)
        return _read_text_rows(file, None, len(fields) - 1, first_line=1)  # GloVe has no header
    if max(map(len, fields)) > _MAX_DIGITS:
        raise ZooError(f"the header has a number of more than {_MAX_DIGITS} digits")
    count, dim = int(fields[0]), int(fields[1])
    if not count or not dim:
        raise ZooError(f"the header declares {count} words of size {dim}")
    if count * (dim + 1) > size:
        raise ZooError(
            f"the header declares {count:,} words of size {dim:,}, more than {size:,} bytes hold"
        )
    position = file.tell()
    numbers = _count_numbers(file.readline(_MAX_LINE_BYTES))
    file.seek(position)
    if not numbers:
        return _read_binary_rows(file, count, dim)
    if numbers != dim:
        raise ZooError(f"the header declares vectors of size {dim:,}, but line 2 has {numbers:,}")
    return _read_text_rows(file, count, dim, first_line=2)


def _count_numbers(line: bytes) -> int:
    """Return how many numbers a line of text ends with; 0 if it is not text."""
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


def _read_text_rows(file: BinaryIO, count: int | None, dim: int, *, first_line: int) -> Rows:
    if dim < 1:
        raise ZooError("line 1 has a word and no numbers")
    words, rows = [], []
    for number, line in enumerate(_iter_lines(file), first_line):
        try:
            # Words of some files contain spaces, so the numbers are the last fields.
            fields = line.decode("utf-8").rstrip().split(" ")
            with np.errstate(over="ignore"):  # numbers that are too large become infinite
                word, row = " ".join(fields[:-dim]), np.array(fields[-dim:], dtype=np.float32)
        except UnicodeDecodeError:
            raise ZooError(f"line {number} is not UTF-8") from None
        except ValueError:
            raise ZooError(f"line {number} is not a word and {dim} numbers") from None
        if not word or len(row) != dim or not np.isfinite(row).all():
            raise ZooError(f"line {number} is not a word and {dim} finite numbers")
        words.append(word)
        rows.append(row)
    if count is not None and len(words) != count:
        raise ZooError(f"the header declares {count:,} words, but the file has {len(words):,}")
    return words, np.stack(rows)


def _iter_lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(_MAX_LINE_BYTES):
        if line.strip():
            yield line


def _read_binary_rows(file: BinaryIO, count: int, dim: int) -> Rows:
    words: list[str] = []
    matrix = np.empty((count, dim), dtype=np.float32)
    for row in range(count):
        word = _read_word(file, row)
        numbers = file.read(4 * dim)
        if len(numbers) != 4 * dim:
            raise ZooError(f"the file ends in the vector of word {row + 1:,} of {count:,}")
        matrix[row] = np.frombuffer(numbers, dtype="<f4")
        words.append(word)
    if not np.isfinite(matrix).all():
        raise ZooError("the file has numbers that are not finite")
    if any(_iter_lines(file)):
        raise ZooError(f"the file continues after the {count:,} words that the header declares")
    return words, matrix


def _read_word(file: BinaryIO, row: int) -> str:
    letters = bytearray()
    while (letter := file.read(1)) != b" ":
        if not letter:
            raise ZooError(f"the file ends in word {row + 1:,}")
        if len(letters) > _MAX_WORD_BYTES:
            raise ZooError(f"word {row + 1:,} has more than {_MAX_WORD_BYTES:,} bytes")
        letters += letter
    try:
        word = letters.lstrip(b"\n").decode("utf-8")
    except UnicodeDecodeError:
        raise ZooError(f"word {row + 1:,} is not UTF-8") from None
    if not word:
        raise ZooError(f"word {row + 1:,} is empty")
    return word
