"""Tokens with the largest logits, found without sorting the vocabulary, on the CPU.

Notation: N rows, V vocabulary, n chunks of a row, M candidates of a row.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from zoo.plugin import Acceleration, Call, Declined, Sampler, Selection

LARGE = 4096
"""Vocabulary size from which candidates are searched; below it the plain formula is as fast."""
CHUNK = 128
"""Number of neighbouring tokens whose maximum is computed first."""
ROWS = 16
"""Least number of rows of a thread."""

Array = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """Some tokens of each row, as a smaller vocabulary.

    Shapes:
        logits [N, M], -inf at padding; offsets [N]: the number of candidates of earlier rows;
        places, sources: indices of those that are not padding in [N, M] and in [N, V], flattened;
        shape: [..., V].
    """

    logits: Array
    offsets: Indices
    places: Indices
    sources: Indices
    shape: torch.Size

    def expand(self, weights: Array) -> Tensor:
        """Return the distribution [..., V], given weights [N, M] of the candidates."""
        dense = torch.zeros(self.shape, device="cpu")
        probs = weights / weights.sum(axis=1, keepdims=True)
        dense.view(-1).numpy()[self.sources] = probs.reshape(-1)[self.places]
        return dense

    def sample(self, weights: Array, u: npt.NDArray[np.float64]) -> tuple[Tensor, Tensor]:
        """Sample a token of each row: its ID and logit [...], given weights [N, M] and uniform
        random numbers [N, 1]."""
        cumulative = weights.cumsum(axis=1, dtype=np.float64)
        # The product stays below the sum, so the index of a weight above 0 is found.
        target = np.minimum(u, 1 - 1e-15) * cumulative[:, -1:]
        columns = (cumulative <= target).sum(axis=1)
        tokens = self.sources[self.offsets + columns] % self.shape[-1]
        logits = self.logits[np.arange(len(columns)), columns]
        rows = self.shape[:-1]
        return torch.from_numpy(tokens).view(rows), torch.from_numpy(logits).view(rows)


class CandidateSearch(Acceleration):
    """Samples from a few candidates, with the same distribution as without the other tokens.

    On the CPU the candidates of a large vocabulary are found first; a GPU would have to wait for
    their number.

    Attributes:
        uses_threads: find the candidates of parts of the rows in threads, which is slower if they
            are found fast.
    """

    supports_autocast: ClassVar[bool] = True
    uses_threads: ClassVar[bool] = False

    @abstractmethod
    def candidates(self, target: Any, logprobs: Tensor) -> Candidates | None:
        """Return all tokens with a probability above 0; None to compute with all tokens."""

    @abstractmethod
    def weights(self, target: Any, logits: Array) -> Array:
        """Return the probabilities [N, M], not normalised, of the logits [N, M] of candidates."""

    @abstractmethod
    def samplers(self) -> Iterator[Sampler]:
        """Yield samplers for the laws."""

    def why_not(self, target: Sampler, device: torch.device) -> str | None:
        return None if device.type == "cpu" else f"the device is '{device.type}', not 'cpu'"

    def distribution(self, target: Sampler, logprobs: Tensor) -> Tensor | Declined:
        found = self.candidates(target, logprobs) if is_searchable(logprobs) else None
        if found is None:
            return Declined("all tokens of the vocabulary are used")
        return found.expand(self.weights(target, found.logits))

    def select(
        self,
        target: Sampler,
        logprobs: Tensor,
        scores: Tensor,
        generator: torch.Generator | None = None,
    ) -> Selection | Declined:
        parts = self._find_in_parts(target, logprobs) if is_searchable(logprobs) else []
        if not parts:
            return Declined("all tokens of the vocabulary are used")
        rows = logprobs.shape[:-1].numel()
        u = torch.rand(rows, 1, dtype=torch.float64, generator=generator, device="cpu").numpy()
        tokens, token_logprobs = _sample_parts(parts, u)
        parents = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        return Selection(tokens, parents, scores + token_logprobs)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        generator = torch.Generator("cpu").manual_seed(0)
        for vocab in (LARGE, LARGE + 3):  # the second one is not a multiple of the chunk size
            logits = 3 * torch.randn(2, 3, vocab, generator=generator, device="cpu")
            logits[0, 0, 7:] = -torch.inf
            for sampler in self.samplers():
                yield Call(sampler, (logits.log_softmax(dim=-1),), method="distribution")

    def _find_in_parts(self, target: Sampler, logprobs: Tensor) -> list[tuple[Candidates, Array]]:
        """Return the candidates of parts of the rows, and their weights; none to use all tokens."""

        def find(part: Tensor) -> tuple[Candidates, Array] | None:
            found = self.candidates(target, part)
            return None if found is None else (found, self.weights(target, found.logits))

        threads = min(torch.get_num_threads(), len(logprobs) // ROWS) if self.uses_threads else 1
        if threads <= 1:
            found = [find(logprobs)]
        else:
            parts = logprobs.chunk(threads)
            with ThreadPoolExecutor(len(parts)) as pool:
                found = list(pool.map(find, parts))
        return [part for part in found if part] if all(found) else []


def _sample_parts(
    parts: Sequence[tuple[Candidates, Array]], u: npt.NDArray[np.float64]
) -> tuple[Tensor, Tensor]:
    """Sample a token of each row of all parts, one after the other: IDs and logits."""
    if len(parts) == 1:
        ((found, weights),) = parts
        return found.sample(weights, u)
    first, samples = 0, []
    for found, weights in parts:
        samples.append(found.sample(weights, u[first : first + len(weights)]))
        first += len(weights)
    tokens, logits = zip(*samples, strict=True)
    return torch.cat(tokens), torch.cat(logits)


def is_searchable(logits: Tensor) -> bool:
    """Return whether the vocabulary is large and the values can be read."""
    return (
        logits.device.type == "cpu"
        and type(logits) is Tensor
        and logits.dtype == torch.float32
        and logits.shape[-1] >= LARGE
        and logits.numel() > 0
    )


def softmax_weights(logits: Array, temperature: float) -> Array:
    """Return exp(logits / temperature) for logits [N, M], divided by its maximum."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    shifted /= np.float32(temperature)
    weights: Array = np.exp(shifted)
    return weights


def top_candidates(logits: Tensor, k: int) -> Candidates | None:
    """Return tokens [..., M] that include the k largest of logits [..., V] and ties with the k-th.

    Returns None if there are so many that the plain formula is as fast.
    """
    if 3 * k * CHUNK > logits.shape[-1]:
        return None
    # k chunks have a maximum that is at least the k-th largest one.
    return find_candidates(logits, lambda maxima: kth_largest(maxima, k))


def kth_largest(values: Array, k: int) -> Array:
    """Return the k-th largest [N] of values [N, n], k <= n."""
    index = values.shape[1] - k
    return np.partition(values, index, axis=1)[:, index]


def find_candidates(logits: Tensor, bound: Callable[[Array], Array]) -> Candidates | None:
    """Return the tokens whose logits are at least a bound; None if there are many of them.

    Args:
        logits: logits [..., V], `is_searchable`.
        bound: returns the bound [N] of each row, given the maxima [N, n] of its chunks.
    """
    V = logits.shape[-1]
    flat = logits.reshape(-1, V).contiguous()
    N, full = len(flat), V // CHUNK
    maxima = flat[:, : CHUNK * full].view(N, full, CHUNK).amax(dim=2)
    if V % CHUNK:
        maxima = torch.cat([maxima, flat[:, CHUNK * full :].amax(dim=1, keepdim=True)], dim=1)
    bounds = bound(maxima.numpy())
    hits = np.flatnonzero(maxima.numpy() >= bounds[:, None])
    if 2 * len(hits) > maxima.numel():
        return None
    rows = hits // maxima.shape[1]  # of the chunks
    index = hits - rows * maxima.shape[1]
    starts = np.minimum(index * CHUNK, V - CHUNK)  # a shorter last chunk overlaps the one before
    if V % CHUNK == 0:
        values = flat.view(-1, CHUNK).numpy().take(hits, axis=0)  # [hits, CHUNK]
    else:
        from_each = flat.as_strided((flat.numel() - CHUNK + 1, CHUNK), (1, 1)).numpy()
        values = from_each[rows * V + starts]
    found = np.flatnonzero(values >= bounds.take(rows)[:, None])
    chunk = found // CHUNK
    within = found - chunk * CHUNK
    if V % CHUNK:  # skip tokens of the overlap, which are found twice
        is_first = starts.take(chunk) + within >= CHUNK * index.take(chunk)
        found, chunk, within = found[is_first], chunk[is_first], within[is_first]
    rows = rows.take(chunk)  # of the candidates
    sources = rows * V + starts.take(chunk) + within
    return pad_candidates(rows, sources, values.reshape(-1).take(found), logits.shape)


def pad_candidates(
    rows: Indices, sources: Indices, values: Array, shape: torch.Size, fill: float = -np.inf
) -> Candidates | None:
    """Return candidates, given the row, the index and the logit [...] of each one, in order.

    Returns None if a row has none, as one with NaN.
    """
    N = shape[:-1].numel()
    counts = np.bincount(rows, minlength=N)
    if not counts.all():
        return None
    offsets = np.cumsum(counts) - counts
    M = int(counts.max())
    places = np.arange(len(rows)) + (np.arange(0, N * M, M) - offsets).take(rows)
    logits = np.full((N, M), fill, np.float32)
    logits.reshape(-1)[places] = values
    return Candidates(logits, offsets, places, sources, shape)
