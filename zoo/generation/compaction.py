"""Removal of items that are done from a batch.

Notation: B items, N hypotheses of an item that the sampler returns, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from zoo.generation.search import Progress
from zoo.interfaces import Sampler

MIN_ROWS = 64
"""Smaller batches are not reduced on a GPU, whose steps take as long with fewer rows."""
MIN_STEPS = 16
"""Steps that must be left on a GPU, since the step of a smaller batch is recorded again."""


class Compaction:
    """Halves a batch when at least half of its items are done, and keeps the removed ones.

    Sizes are powers of two, so that recorded steps are used again. Batches of random samplers are
    not reduced: a seed gives the same tokens as with `stream_tokens`.
    """

    def __init__(self, sampler: Sampler, progress: Progress) -> None:
        self._sampler = sampler
        self._items = torch.arange(len(progress.search.scores), device=progress.invalid.device)
        self._outputs: tuple[Tensor, Tensor] | None = None

    def reduce(self, progress: Progress, done: Sequence[bool], steps_left: int) -> Progress | None:
        """Return the progress of the items that are not done, None if the batch is not reduced."""
        active = [item for item, is_done in enumerate(done) if not is_done]
        rows = progress.search.scores.numel()
        is_random = type(self._sampler).distribution is not Sampler.distribution
        on_gpu = progress.invalid.device.type == "cuda"
        if (
            is_random
            or self._sampler.keeps_items
            or (on_gpu and (rows < MIN_ROWS or steps_left < MIN_STEPS))
        ):
            return None
        size = 1 << (len(active) - 1).bit_length()
        if not active or size > len(done) // 2:
            return None
        others = [item for item, is_done in enumerate(done) if is_done]
        kept = torch.tensor(
            sorted(active + others[: size - len(active)]), device=progress.invalid.device
        )
        self._keep(progress)
        self._items = self._items.index_select(0, kept)
        return progress.select(kept)

    def finish(self, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return tokens [B, N, T] and scores [B, N] of all items."""
        self._keep(progress)
        assert self._outputs is not None
        return self._outputs

    def _keep(self, progress: Progress) -> None:
        """Store the outputs of the items of the batch, until they are replaced by later ones."""
        tokens, scores = self._sampler.finish(progress.search)
        if self._outputs is None:
            # The tensors may have a fixed address, at which the next step writes.
            self._outputs = tokens.clone(), scores.clone()
        else:
            for output, part in zip(self._outputs, (tokens, scores), strict=True):
                output.index_copy_(0, self._items, part)
