"""Retrieval among all second texts of the data."""

import random
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from zoo import ZooError
from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs

_CHUNK = 1024


class Retrieval(Metric):
    r"""Recall and mean reciprocal rank of the second text of each pair among those of all pairs.

    .. math::
        \mathrm{MRR} = \frac{1}{N} \sum_i \frac{1}{r_i}, \qquad
        \mathrm{recall@}k = \frac{1}{N} \sum_i \mathbb{1}[r_i \le k]

    The rank r_i is 1 plus the number of second texts whose cosine with the first text i is higher
    than that of its own second text, so equal texts do not count. Values do not depend on batches.

    Paper: Voorhees 1999, section 3 (mean reciprocal rank).

    Args:
        k: numbers of retrieved texts, for which the recall is computed.

    Shapes:
        N vectors, N vectors -> {retrieval_mrr, retrieval_recall@k: from 0 to 1}.
    """

    name: ClassVar[str] = "retrieval"
    paper: ClassVar[str] = "Voorhees 1999, The TREC-8 Question Answering Track Report"
    consumes: ClassVar[Literal["vectors"]] = "vectors"

    def __init__(
        self, *, k: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None
    ) -> None:
        self.k = [1, 5, 10] if k is None else k
        self.queries: list[Sequence[float]] = []
        self.candidates: list[Sequence[float]] = []

    def update(
        self, predictions: Sequence[Sequence[float]], references: Sequence[Sequence[float]]
    ) -> None:
        for query, candidate in zip_pairs(self.name, predictions, references):
            self.queries.append(query)
            self.candidates.append(candidate)

    def merge(self, other: Self) -> None:
        self.queries += other.queries
        self.candidates += other.candidates

    def compute(self) -> dict[str, float]:
        if not self.queries:
            raise ZooError("retrieval has no value: no pairs were added")
        queries, candidates = (
            _normalise(np.array(rows)) for rows in (self.queries, self.candidates)
        )
        ranks = np.empty(len(queries))
        for start in range(0, len(queries), _CHUNK):
            part = slice(start, start + _CHUNK)
            scores = queries[part] @ candidates.T  # [chunk, N]
            own = (queries[part] * candidates[part]).sum(axis=1)[:, None]
            ranks[part] = 1 + (scores > own + 1e-9).sum(axis=1)
        values = {"retrieval_mrr": float((1 / ranks).mean())}
        return values | {f"retrieval_recall@{k}": float((ranks <= k).mean()) for k in self.k}

    def signature(self) -> str:
        return "retrieval|score:cosine|candidates:all|version:1"

    def reference(
        self, predictions: Sequence[Sequence[float]], references: Sequence[Sequence[float]]
    ) -> dict[str, float]:
        def cosine(a: Sequence[float], b: Sequence[float]) -> float:
            dot = sum(x * y for x, y in zip(a, b, strict=True))
            return dot / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5

        ranks = []
        for query, own in zip(predictions, references, strict=True):
            higher = [c for c in references if cosine(query, c) > cosine(query, own) + 1e-9]
            ranks.append(1 + len(higher))
        values = {"retrieval_mrr": sum(1 / rank for rank in ranks) / len(ranks)}
        recalls = {k: sum(rank <= k for rank in ranks) / len(ranks) for k in self.k}
        return values | {f"retrieval_recall@{k}": value for k, value in recalls.items()}

    def example(
        self, count: int, rng: random.Random
    ) -> tuple[list[list[float]], list[list[float]]]:
        def vectors() -> list[list[float]]:
            return [[rng.uniform(-1, 1) for _ in range(3)] for _ in range(count)]

        return vectors(), vectors()


def _normalise(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
