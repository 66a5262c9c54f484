"""Removal of items that are done from a batch.

Notation: B items, N hypotheses of an item that the sampler returns, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from zoo.generation.search import DecodeState
from zoo.plugin import Sampler
from zoo_fast.generation.known_samplers import known_sampler
from zoo_fast.generation.state_items import select_items

MIN_ROWS = 64
"""Smaller batches are not reduced on a GPU, whose steps take as long with fewer rows."""
MIN_STEPS = 16
"""Steps that must be left on a GPU, since the step of a smaller batch is captured again."""


class Compaction:
    """Halves a batch when at least half of its items are done, and keeps the removed ones.

    Sizes are powers of two, so that captured steps are used again. Batches of random samplers are
    not reduced: a seed gives the same tokens as with `stream_tokens`.
    """

    def __init__(self, sampler: Sampler, state: DecodeState) -> None:
        self._sampler = sampler
        self._items = torch.arange(len(state.search.scores), device=state.invalid.device)
        self._outputs: tuple[Tensor, Tensor] | None = None

    def reduce(
        self, state: DecodeState, done: Sequence[bool], steps_left: int
    ) -> DecodeState | None:
        """Return the state of the items that are not done, None if the batch is not reduced."""
        active = [item for item, is_done in enumerate(done) if not is_done]
        rows = state.search.scores.numel()
        on_gpu = state.invalid.device.type == "cuda"
        if known_sampler(self._sampler).keeps_items or not select_items.knows(state.state):
            return None
        if on_gpu and (rows < MIN_ROWS or steps_left < MIN_STEPS):
            return None
        size = 1 << (len(active) - 1).bit_length()
        if not active or size > len(done) // 2:
            return None
        others = [item for item, is_done in enumerate(done) if is_done]
        kept = torch.tensor(
            sorted(active + others[: size - len(active)]), device=state.invalid.device
        )
        self.keep(state)
        self._items = self._items.index_select(0, kept)
        return _select_items(state, kept)

    @property
    def outputs(self) -> tuple[Tensor, Tensor]:
        """Tokens [B, N, T] and scores [B, N] of all items, as they were kept last."""
        assert self._outputs is not None
        return self._outputs

    def keep(self, state: DecodeState) -> None:
        """Store the outputs of the items of the batch, until they are replaced by later ones."""
        tokens, scores = self._sampler.finish(state.search)
        if self._outputs is None:
            # The tensors may have a fixed address, at which the next step writes.
            self._outputs = tokens.clone(), scores.clone()
        else:
            for output, part in zip(self._outputs, (tokens, scores), strict=True):
                output.index_copy_(0, self._items, part)


def _select_items(state: DecodeState, items: Tensor) -> DecodeState:
    """Return the state of some items, given their indices [n]."""
    prompts, search, W = state.prompts, state.search, state.search.scores.shape[1]
    own = torch.arange(W, device=items.device)
    decoder_state = select_items(state.state, items, (items[:, None] * W + own).flatten())
    assert decoder_state is not None
    parts = {
        name: getattr(search, name).index_select(0, items)
        for name in ("tokens", "scores", "finished", "num_generated")
    }
    sampler_state = {n: t.index_select(0, items) for n, t in search.sampler_state.items()}
    return DecodeState(
        replace(
            prompts,
            prefix=prompts.prefix.index_select(0, items),
            suffix=prompts.suffix.index_select(0, items),
            forced_lengths=prompts.forced_lengths.index_select(0, items),
        ),
        replace(
            search,
            task=replace(search.task, batch=len(items)),
            sampler_state=sampler_state,
            **parts,
        ),
        decoder_state,
        state.invalid,
    )
