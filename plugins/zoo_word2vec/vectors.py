"""`Vectors`: words with a vector each, and queries on them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from zoo import ZooError
from zoo.plugin import MissingExtra, truncate
from zoo_word2vec.vector_files import Format, read_vectors, write_vectors

if TYPE_CHECKING:
    from torch import Tensor

    from zoo import Model


@dataclass(frozen=True)
class Vectors:
    """Words with a vector each.

    Shapes:
        matrix [N, D], float32, one row for each word.

    >>> animals = Vectors(["cat", "dog", "car"], [[1, 0], [1, 0.1], [0, 1]])
    >>> animals.most_similar("cat", 1)[0][0]
    'dog'
    """

    words: Sequence[str]
    matrix: NDArray[np.float32]
    index: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        matrix = np.ascontiguousarray(self.matrix, dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[0] != len(self.words):
            raise ZooError(
                f"matrix has shape {list(matrix.shape)}, expected [{len(self.words)}, D] for "
                f"{len(self.words)} words"
            )
        if not len(self.words):
            raise ZooError("words is empty; expected at least one word")
        index: dict[str, int] = {}
        for row, word in enumerate(self.words):
            if index.setdefault(word, row) != row:
                raise ZooError(
                    f"the word '{truncate(word, 100)}' is in rows {index[word]} and {row}"
                )
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "index", index)

    @property
    def dim(self) -> int:
        """The size of each vector."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.matrix[self._row_of(word)]
        return vector

    def similarity(self, one: str, other: str) -> float:
        """Return the cosine similarity of two words."""
        return float(_normalize(self[one]) @ _normalize(self[other]))

    def most_similar(self, word: str, count: int = 10) -> list[tuple[str, float]]:
        """Return the words with the highest cosine similarity to a word, highest first."""
        return self._nearest(_normalize(self[word]), {word}, count)

    def analogy(self, a: str, b: str, c: str, count: int = 10) -> list[tuple[str, float]]:
        """Return the words that relate to c as b relates to a: nearest to b - a + c."""
        target = _normalize(self[b]) - _normalize(self[a]) + _normalize(self[c])
        return self._nearest(_normalize(target), {a, b, c}, count)

    def copy_into(self, table: Tensor, words: Sequence[str | None]) -> int:
        """Copy vectors into the rows of an embedding table, and return the number of rows copied.

        Args:
            table: the weight of an embedding, [V, D].
            words: the word of each row; rows with None or an unknown word are left unchanged.
        """
        import torch

        if list(table.shape) != [len(words), self.dim]:
            raise ZooError(
                f"table has shape {list(table.shape)}, expected [{len(words)}, {self.dim}] for "
                f"{len(words)} words and vectors of size {self.dim}"
            )
        rows = [row for row, word in enumerate(words) if word in self.index]
        found = self.matrix[[self.index[str(words[row])] for row in rows]]
        with torch.no_grad():
            table[torch.tensor(rows, dtype=torch.long)] = torch.from_numpy(found).to(table)
        return len(rows)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Vectors:
        """Read a file in word2vec text or binary format, or GloVe or fastText text format.

        Of a word that the file contains several times, the first vector is used.
        """
        words, matrix = read_vectors(path)
        first = {word: row for row, word in reversed(list(enumerate(words)))}
        if len(first) == len(words):
            return cls(words, matrix)
        rows = sorted(first.values())
        return cls([words[row] for row in rows], matrix[rows])

    def write(self, path: str | os.PathLike[str], file_format: Format = "word2vec") -> None:
        """Write the vectors to a file, atomically."""
        write_vectors(path, self.words, self.matrix, file_format)

    def _row_of(self, word: str) -> int:
        if word not in self.index:
            close = [other for other in self.words if other.lower() == word.lower()]
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise ZooError(
                f"the word '{truncate(word, 100)}' is not one of the {len(self):,} words{hint}"
            )
        return self.index[word]

    def _nearest(
        self, unit: NDArray[np.float32], exclude: Iterable[str], count: int
    ) -> list[tuple[str, float]]:
        norms = np.linalg.norm(self.matrix, axis=1)
        cosines = self.matrix @ unit / np.where(norms > 0, norms, 1)
        cosines[[self._row_of(word) for word in exclude]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:count]
        return [(self.words[i], float(cosines[i])) for i in best if np.isfinite(cosines[i])]


def _normalize(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = np.linalg.norm(vector)
    unit: NDArray[np.float32] = vector / norm if norm > 0 else vector
    return unit


def vectors_from_model(model: Model, side: str = "source") -> Vectors:
    """Return the embedding of every token of a model's tokenizer.

    Args:
        model: a model with a tokenizer.
        side: ``"source"`` or ``"target"``.
    """
    import torch

    if not model.tokenizer or side not in model.tokenizer:
        raise ZooError(f"the model has no {side} tokenizer, so its vectors have no words")
    ids_of = _vocabulary(model.tokenizer[side])
    words = sorted(ids_of, key=ids_of.__getitem__)
    embedding = model.get_embedding(side)
    device = next(embedding.parameters()).device
    ids = torch.tensor([ids_of[word] for word in words], device=device)
    with torch.no_grad():
        matrix = embedding(ids[None])[0].float().cpu().numpy()
    return Vectors(words, matrix)


def _vocabulary(tokenizer: str) -> dict[str, int]:
    """Return the tokens of a tokenizer, given as JSON, with their IDs."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra("a tokenizer", library="tokenizers", extra="text") from None
    vocabulary: dict[str, int] = Tokenizer.from_str(tokenizer).get_vocab()
    return vocabulary
