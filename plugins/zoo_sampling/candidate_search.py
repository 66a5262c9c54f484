"""Tokens with the largest logits, found without sorting the vocabulary, on the CPU.

Notation: N rows, V vocabulary, n chunks of a row, M candidates of a row.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from zoo.plugin import Sampler, Selection

LARGE = 4096
"""Vocabulary size from which candidates are searched; below it the plain formula is as fast."""
CHUNK = 128
"""Number of neighbouring tokens whose maximum is computed first."""

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Candidates:
    """Some tokens of each row, as a smaller vocabulary.

    Shapes:
        logits [..., M], -inf at padding; tokens [..., M]: their IDs; places, sources: indices of
        those that are not padding in [..., M] and in [..., V], flattened; V: vocabulary size.
    """

    logits: Tensor
    tokens: Tensor
    places: Tensor
    sources: Tensor
    V: int

    def expand(self, probs: Tensor) -> Tensor:
        """Return probabilities [..., V], given those of the candidates [..., M]."""
        dense = probs.new_zeros(*probs.shape[:-1], self.V)
        dense.view(-1)[self.sources] = probs.view(-1)[self.places]
        return dense


class CandidateSampler(Sampler):
    """A sampler whose distribution is that of a few candidates, the same as without other tokens.

    On the CPU the candidates of a large vocabulary are found first; a GPU would have to wait for
    their number.
    """

    @abstractmethod
    def candidates(self, logprobs: Tensor) -> Candidates | None:
        """Return all tokens with a probability above 0; None to compute with all tokens."""

    @abstractmethod
    def dense_distribution(self, logprobs: Tensor) -> Tensor:
        """Compute `distribution` with all tokens."""

    def distribution(self, logprobs: Tensor) -> Tensor:
        found = self.candidates(logprobs) if is_searchable(logprobs) else None
        if found is None:
            return self.dense_distribution(logprobs)
        return found.expand(self.dense_distribution(found.logits))

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        found = self.candidates(logprobs) if is_searchable(logprobs) else None
        if found is None:
            return super().select(logprobs, scores, generator)
        selection = super().select(found.logits, scores, generator)
        tokens = found.tokens.gather(-1, selection.tokens[..., None])[..., 0]
        return replace(selection, tokens=tokens)


def is_searchable(logits: Tensor) -> bool:
    """Return whether the vocabulary is large and the values can be read: on the CPU, in eager mode
    and without gradients."""
    return (
        logits.device.type == "cpu"
        and type(logits) is Tensor
        and logits.dtype == torch.float32
        and logits.shape[-1] >= LARGE
        and logits.numel() > 0
        and not (logits.requires_grad and torch.is_grad_enabled())
        and not torch.compiler.is_compiling()
    )


def top_candidates(logits: Tensor, k: int) -> Candidates | None:
    """Return tokens [..., M] that include the k largest of logits [..., V] and ties with the k-th.

    Returns None if there are so many that the plain formula is as fast.
    """
    if 3 * k * CHUNK > logits.shape[-1]:
        return None

    def kth_of_groups(maxima: Array) -> Array:
        # k groups of chunks have a maximum that is at least the k-th largest one.
        size = maxima.shape[1] // (5 * k // 2)
        groups = maxima.shape[1] // size
        grouped = maxima[:, : groups * size].reshape(len(maxima), size, groups).max(axis=1)
        kth: Array = np.sort(grouped, axis=1)[:, -k]
        return kth

    return find_candidates(logits, kth_of_groups)


def find_candidates(logits: Tensor, bound: Callable[[Array], Array]) -> Candidates | None:
    """Return the tokens whose logits are at least a bound; None if there are many of them.

    Args:
        logits: logits [..., V], `is_searchable`.
        bound: returns the bound [N] of each row, given the maxima [N, n] of its chunks.
    """
    V = logits.shape[-1]
    flat = logits.reshape(-1, V).contiguous()
    N, n = len(flat), V // CHUNK
    maxima = flat[:, : CHUNK * n].view(N, n, CHUNK).amax(dim=2)
    if V % CHUNK:
        maxima = torch.cat([maxima, flat[:, CHUNK * n :].amax(dim=1, keepdim=True)], dim=1)
    least = bound(maxima.numpy())
    hits = np.flatnonzero(maxima.numpy() >= least[:, None])
    if 2 * len(hits) > maxima.numel():
        return None
    chunk_rows, index = np.divmod(hits, maxima.shape[1])
    start = np.minimum(index * CHUNK, V - CHUNK)  # a shorter last chunk overlaps the one before
    chunks = flat.as_strided((N * V - CHUNK + 1, CHUNK), (1, 1)).numpy()  # from each token on
    values = chunks[chunk_rows * V + start]  # [hits, CHUNK]
    is_candidate = values >= least[chunk_rows, None]
    if V % CHUNK:
        is_candidate &= start[:, None] + np.arange(CHUNK) >= index[:, None] * CHUNK
    found = np.flatnonzero(is_candidate)
    hit, within = np.divmod(found, CHUNK)
    rows, ids = chunk_rows[hit], start[hit] + within
    counts = np.bincount(rows, minlength=N)
    columns = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    M = counts.max(initial=1)
    places = rows * M + columns
    small, tokens = np.full(N * M, -np.inf, np.float32), np.zeros(N * M, np.int64)
    small[places], tokens[places] = values.reshape(-1)[found], ids
    return Candidates(
        torch.from_numpy(small).view(*logits.shape[:-1], M),
        torch.from_numpy(tokens).view(*logits.shape[:-1], M),
        torch.from_numpy(places),
        torch.from_numpy(rows * V + ids),
        V,
    )
