"""CTC prefix beam search of a batch in tensors of fixed size, without synchronisation per frame.

Notation: B batch size, T frames, C frames of a chunk, W prefixes in the beam, V vocabulary
including the blank, J labels considered per frame, Q pairs of a prefix and a label.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo_ctc.lattice import NEG_INF
from zoo_fast.ctc.array_search import HASH_FACTOR, HASH_ROOT
from zoo_fast.ctc.beam_candidates import pairs
from zoo_fast.device.cuda_graph import GraphedFunction

CHUNK = 16
"""Number of frames that are captured as one CUDA graph."""
State = Mapping[str, Tensor]


def search_batch(
    logprobs: Tensor, mask: Tensor, *, blank: int, width: int, prune: float, n_best: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best label sequences, as `search_arrays` does without a language model.

    Shapes:
        logprobs [B, T, V], mask [B, T] -> labels [B, n_best, U], their mask [B, n_best, U], scores
        [B, n_best] in float64, -inf without a hypothesis.
    """
    B, T, V = logprobs.shape
    # A padding frame has the blank with probability 1, which changes no probability.
    certain = torch.arange(V, device=mask.device) == blank
    padding = torch.where(certain, 0.0, NEG_INF).double()
    run: Callable[[State], dict[str, Tensor]] = functools.partial(
        run_chunk, blank=blank, width=width, prune=prune
    )
    lock: AbstractContextManager[Any] = nullcontext()
    if logprobs.device.type == "cuda":
        run = graphed = _graphed(blank, width, prune, logprobs.device)
        lock = graphed.lock
    state: State = _start(B, width, blank, logprobs.device)
    sources, labels = [], []
    with lock:  # outputs are inputs of the next call
        for t in range(0, T, CHUNK):
            frames = torch.where(mask[:, t : t + CHUNK, None], logprobs[:, t : t + CHUNK], padding)
            missing = CHUNK - frames.shape[1]
            frames = torch.cat([frames, padding.expand(B, missing, V)], dim=1)
            outputs = run({**state, "frames": frames})
            sources.append(outputs["sources"].clone())
            labels.append(outputs["labels"].clone())
            state = {name: outputs[name] for name in state}
        scores = state["total"][:, :n_best].clone()
    emitted = _backtrack(sources, labels, n_best, blank, scores)
    return (*emitted, scores)


@functools.lru_cache(maxsize=8)
def _graphed(blank: int, width: int, prune: float, device: torch.device) -> GraphedFunction:
    return GraphedFunction(
        functools.partial(run_chunk, blank=blank, width=width, prune=prune), max_graphs=4
    )


@functools.cache  # graphs read the tensors as long as they exist
def _pairs_on(device: torch.device, labels: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the prefixes and labels [Q] of the pairs and the numbers of pairs [W * (J + 1)], Q for
    labels that are not considered; kept, because a CUDA graph cannot copy them to the device."""
    prefix, label, index = (
        torch.from_numpy(array).to(device) for array in pairs(width, labels, width)
    )
    return prefix, label, F.pad(index, (0, 1), value=len(prefix)).flatten()


def _start(B: int, width: int, blank: int, device: torch.device) -> dict[str, Tensor]:
    """Return a beam with the empty prefix in the first of W places."""
    first = torch.arange(width, device=device).expand(B, width) == 0
    total = torch.where(first, 0.0, NEG_INF).double()
    return {
        "blank": total,
        "label": torch.full_like(total, NEG_INF),
        "total": total.clone(),
        "last": torch.full_like(first, blank, dtype=torch.long),
        "hashes": torch.where(first, HASH_ROOT, 1),
        "parent_hashes": torch.zeros_like(first, dtype=torch.long),
    }


def run_chunk(inputs: State, *, blank: int, width: int, prune: float) -> dict[str, Tensor]:
    """Return the state after the frames [B, C, V] of the inputs, with the places [B, C, W] in the
    beam before each frame and the new labels [B, C, W], the blank for none."""
    frames = inputs["frames"]
    B, C, V = frames.shape
    extensions = frames.clone()
    if prune > 0:
        low = (frames < math.log(prune)) & (frames < frames.amax(dim=-1, keepdim=True))
        extensions.masked_fill_(low, NEG_INF)
    extensions[..., blank] = NEG_INF
    J = min(V, width + 1)
    ordered, symbols = extensions.topk(J, dim=-1)
    ranks = torch.full_like(symbols[..., :1].expand(B, C, V), J)
    ranks = ranks.scatter(2, symbols, torch.arange(J, device=frames.device).expand_as(symbols))
    prefix, label, index = _pairs_on(frames.device, J, width)
    candidates, values = symbols[..., label], ordered[..., label]  # [B, C, Q]
    state = {name: inputs[name] for name in inputs if name != "frames"}
    sources, labels = [], []
    for c in range(C):
        state, source, chosen = _step(
            state, frames[:, c], extensions[:, c], ranks[:, c], candidates[:, c], values[:, c],
            prefix, index, blank,
        )  # fmt: skip
        sources.append(source)
        labels.append(chosen)
    return {**state, "sources": torch.stack(sources, 1), "labels": torch.stack(labels, 1)}


def _step(
    state: State,
    frame: Tensor,
    extensions: Tensor,
    ranks: Tensor,
    candidates: Tensor,
    values: Tensor,
    prefix: Tensor,
    index: Tensor,
    blank: int,
) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    ends_blank, ends_label, total = state["blank"], state["label"], state["total"]
    last, hashes, parent_hashes = state["last"], state["hashes"], state["parent_hashes"]
    W, Q = last.shape[1], len(prefix)
    stay_blank = total + frame[:, blank, None]
    stay_label = ends_label + frame.gather(1, last)
    # A repeated label needs a blank in between.
    repeated = last[:, prefix] == candidates
    extended = torch.where(repeated, ends_blank[:, prefix], total[:, prefix]) + values  # [B, Q]
    # An extension that equals a prefix in the beam is merged with it.
    ordered, order = hashes.sort(dim=1)
    parent = order.gather(1, torch.searchsorted(ordered, parent_hashes).clamp(max=W - 1))
    found = hashes.gather(1, parent) == parent_hashes
    repeated = last.gather(1, parent) == last
    entering = torch.where(repeated, ends_blank.gather(1, parent), total.gather(1, parent))
    entering = torch.where(found, entering + extensions.gather(1, last), NEG_INF)
    stay_label = torch.logaddexp(stay_label, entering)
    columns = len(index) // W
    merged = torch.where(found, index[parent * columns + ranks.gather(1, last)], Q)
    extended = F.pad(extended, (0, 1)).scatter(1, merged, NEG_INF)[:, :Q]
    scores = torch.cat([torch.logaddexp(stay_blank, stay_label), extended], dim=1)
    total, selected = scores.topk(W, dim=1)
    stays, pair = selected < W, (selected - W).clamp(min=0)
    source = torch.where(stays, selected, prefix[pair])
    chosen = torch.where(stays, blank, candidates.gather(1, pair))
    kept, alive = hashes.gather(1, source), total > NEG_INF
    updated = {
        "blank": torch.where(stays, stay_blank.gather(1, source), NEG_INF),
        "label": torch.where(stays, stay_label.gather(1, source), total),
        "total": total,
        "last": torch.where(stays, last.gather(1, source), chosen),
        "hashes": torch.where(alive, torch.where(stays, kept, kept * HASH_FACTOR + chosen + 1), 1),
        "parent_hashes": torch.where(
            alive, torch.where(stays, parent_hashes.gather(1, source), kept), 0
        ),
    }
    return updated, source, chosen


def _backtrack(
    sources: list[Tensor], labels: list[Tensor], n_best: int, blank: int, scores: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the labels [B, n_best, U] of the final prefixes and their mask."""
    place = torch.arange(n_best, device=scores.device).expand_as(scores)
    emitted = []
    for chunk_sources, chunk_labels in zip(reversed(sources), reversed(labels), strict=True):
        for c in range(chunk_sources.shape[1] - 1, -1, -1):
            emitted.append(chunk_labels[:, c].gather(1, place))
            place = chunk_sources[:, c].gather(1, place)
    if not emitted:
        empty = torch.zeros(*scores.shape, 0, dtype=torch.long, device=scores.device)
        return empty, empty.bool()
    path = torch.stack(emitted[::-1], dim=2)  # [B, n_best, T]
    is_label = (path != blank) & (scores > NEG_INF)[..., None]
    count = is_label.sum(dim=2, keepdim=True)
    longest = int(count.max())
    # Frames without a new label are written to an extra last column.
    position = torch.where(is_label, is_label.cumsum(dim=2) - 1, longest)
    compact = path.new_zeros(*path.shape[:2], longest + 1).scatter(2, position, path)
    return compact[..., :longest], torch.arange(longest, device=path.device) < count
