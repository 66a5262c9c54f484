"""CTC prefix beam search of a batch on the CPU, in numpy.

Notation: B items, T frames, W prefixes in the beam, V vocabulary including the blank, Q pairs of a
prefix and a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zoo_ctc.language_model_cache import Labels, LanguageModelCache
from zoo_ctc.language_models import LabelLanguageModel
from zoo_ctc.prefix_search import PrefixBeamConfig
from zoo_fast.ctc.beam_candidates import IntArray, pairs

FloatArray = NDArray[np.float64]
HASH_ROOT, HASH_FACTOR = 0x1E3779B97F4A7C15, 6364136223846793005
"""Hash of the empty prefix of the first item, and one more for each further item; that of a prefix
with another label is hash * HASH_FACTOR + label + 1, in 64 bits."""
PADDING_HASH = 1
_NEG_INF = -math.inf


class _Beam(NamedTuple):
    """Prefixes [B, W] and their scores, best first, -inf at padding.

    Shapes:
        ends [2, B, W], the log-probabilities of the paths that end in the blank and in the last
        label; total [B, W], those of both; lm_scores [B, W], the scores of the language model with
        the length bonus; keys [4, B, W]: the last label (the blank for the empty prefix), the
        number of the prefix in the tree, its hash and the hash of the prefix without the last
        label. Two prefixes are equal if their hashes are.
    """

    ends: FloatArray
    total: FloatArray
    lm_scores: FloatArray
    keys: NDArray[np.int64]


class _Tree:
    """Prefixes as nodes with a parent and a last label; node 0 is the empty prefix."""

    def __init__(self) -> None:
        self.parents = [0]
        self.last = [0]

    def add(self, parents: IntArray, labels: IntArray) -> IntArray:
        size = len(self.parents)
        self.parents += parents.tolist()
        self.last += labels.tolist()
        return np.arange(size, len(self.parents))

    def labels(self, node: int) -> Labels:
        reversed_labels = []
        while node:
            reversed_labels.append(self.last[node])
            node = self.parents[node]
        return tuple(reversed_labels[::-1])


def search_arrays(
    frames: FloatArray,
    blank: int,
    config: PrefixBeamConfig,
    lm: LabelLanguageModel | None,
    *,
    lengths: Sequence[int] | None = None,
    n_best: int | None = None,
) -> list[list[tuple[Labels, float]]]:
    """Return the label sequences of each item with their scores, best first.

    Args:
        frames: log-probabilities [B, T, V].
        lm: a language model, with which items are decoded one by one.
        lengths: the number of frames of each item, if it is not T.
        n_best: number of label sequences to return, at most the width.
    """
    B, T, V = frames.shape
    lengths = [T] * B if lengths is None else lengths
    if lm is not None and B > 1:
        each = [frames[i : i + 1, : lengths[i]] for i in range(B)]
        return [search_arrays(item, blank, config, lm, n_best=n_best)[0] for item in each]
    cache = None
    if lm is not None:
        cache = LanguageModelCache(lm, V, config.weight, config.length_bonus)
    # A padding frame has the blank with probability 1, which changes no probability.
    is_padding = np.arange(T) >= np.array(lengths)[:, None]
    frames = np.where(is_padding[..., None], np.where(np.arange(V) == blank, 0, _NEG_INF), frames)
    frames = np.ascontiguousarray(frames.swapaxes(0, 1))  # [T, B, V]
    extensions = _extension_logprobs(frames, blank, config.prune)
    symbols = np.argsort(-extensions, axis=2, kind="stable")
    ranks = np.argsort(symbols, axis=2)
    ordered = np.take_along_axis(extensions, symbols, axis=2)
    tree, beam = _Tree(), _start(B, blank)
    for t in range(max(lengths, default=0)):
        if not beam.total.size:
            break
        beam = _step(beam, frames[t], extensions[t], ordered[t], symbols[t], ranks[t], blank,
                     config.width, tree, cache)  # fmt: skip
    return [_results(beam, item, tree, cache, n_best or config.width) for item in range(B)]


def _start(B: int, blank: int) -> _Beam:
    """Return the beam with the empty prefix of each item."""
    zero = np.zeros((B, 1))
    keys = np.zeros((4, B, 1), dtype=np.int64)
    keys[0], keys[2, :, 0] = blank, HASH_ROOT + np.arange(B)
    return _Beam(np.stack([zero, zero + _NEG_INF]), zero, zero, keys)


def _results(
    beam: _Beam, item: int, tree: _Tree, cache: LanguageModelCache | None, n_best: int
) -> list[tuple[Labels, float]]:
    nodes = beam.keys[1, item].tolist()
    scores = beam.total[item] + beam.lm_scores[item]
    if cache is not None:
        scores = scores + cache.end_scores([tree.labels(node) for node in nodes])
    order = _top_k(scores[None], n_best)[0].tolist()
    return [(tree.labels(nodes[i]), float(scores[i])) for i in order if scores[i] > _NEG_INF]


def _step(
    beam: _Beam,
    frame: FloatArray,
    extensions: FloatArray,
    ordered: FloatArray,
    symbols: IntArray,
    ranks: IntArray,
    blank: int,
    width: int,
    tree: _Tree,
    cache: LanguageModelCache | None,
) -> _Beam:
    total, (last, nodes, hashes, parent_hashes) = beam.total, beam.keys
    (B, W), V, ends_blank = total.shape, frame.shape[1], beam.ends[0]
    item = np.arange(B)[:, None]
    last_label = item * V + last  # an index of [B, V]
    stay = np.empty((2, B, W))
    np.add(total, frame[:, blank, None], out=stay[0])
    np.add(beam.ends[1], frame.take(last_label), out=stay[1])
    prefix, symbol, number = pairs(W, V, width if cache is None else None)
    Q = len(prefix)
    extended = np.empty((B, Q + 1))  # the last one is for pairs that are not considered
    np.add(total.take(prefix, axis=1), ordered.take(symbol, axis=1), out=extended[:, :-1])
    # A repeated label needs a blank in between.
    last_ranks, last_extensions = ranks.take(last_label), extensions.take(last_label)
    pair = number.take(np.arange(0, W * V, V) + last_ranks)
    extended.reshape(-1)[pair + item * (Q + 1)] = ends_blank + last_extensions
    # An extension that equals a prefix in the beam is merged with it.
    order = hashes.argsort(axis=None)
    parents = order.take(hashes.take(order).searchsorted(parent_hashes.reshape(-1)), mode="clip")
    child = (hashes.take(parents) == parent_hashes.reshape(-1)).nonzero()[0]
    if len(child):
        parents = parents.take(child)
        repeated = last.take(parents) == last.take(child)
        entering = np.where(repeated, ends_blank.take(parents), total.take(parents))
        entering += last_extensions.take(child)
        ends_label = stay[1].reshape(-1)
        ends_label[child] = np.logaddexp(ends_label.take(child), entering)
        pair = number.take(parents % W * V + last_ranks.take(child))
        extended.reshape(-1)[pair + parents // W * (Q + 1)] = _NEG_INF
    totals = np.concatenate([np.logaddexp(stay[0], stay[1]), extended[:, :-1]], axis=1)
    scores = totals
    if cache is not None:  # of one item
        rows = cache.extension_scores([tree.labels(node) for node in nodes[0].tolist()])
        lm_scores = beam.lm_scores[0, prefix] + rows[prefix, symbols[0, symbol]]
        lm_scores = np.concatenate([beam.lm_scores, lm_scores[None]], axis=1)
        scores = totals + lm_scores
    chosen = _top_k(scores, width)  # [B, n], indices of [B, W + Q]
    any_dead = _NEG_INF in scores.take(chosen[:, -1]).tolist()
    if any_dead:
        chosen = chosen[:, : int((scores.take(chosen) > _NEG_INF).sum(axis=1).max())]

    selected = chosen - item * (W + Q)
    new = (selected >= W).reshape(-1).nonzero()[0]
    new_item, pair = new // max(selected.shape[1], 1), selected.take(new) - W
    source = (selected + item * W).reshape(-1)
    source[new] = prefix.take(pair) + new_item * W
    labels = symbols.take(symbol.take(pair) + new_item * V)
    ends = stay.reshape(2, -1).take(source, axis=1)
    keys = beam.keys.reshape(4, -1).take(source, axis=1)
    ends[0, new], ends[1, new] = _NEG_INF, extended.take(pair + new_item * (Q + 1))
    added = keys[2].take(new)
    keys[0, new] = labels
    keys[1, new] = tree.add(keys[1].take(new), labels)
    keys[2, new] = added * HASH_FACTOR + (labels + 1)
    keys[3, new] = added
    if any_dead:
        is_dead = scores.take(chosen).reshape(-1) == _NEG_INF
        keys[2:, is_dead] = [[PADDING_HASH], [0]]
    shape = chosen.shape
    lm_scores = np.zeros(shape) if cache is None else lm_scores.take(chosen)
    return _Beam(ends.reshape(2, *shape), totals.take(chosen), lm_scores, keys.reshape(4, *shape))


def _extension_logprobs(frames: FloatArray, blank: int, prune: float) -> FloatArray:
    """Return the log-probabilities [T, B, V] of extending a prefix at each frame."""
    logprobs = frames.copy()
    if prune > 0:
        largest = frames.max(axis=2, keepdims=True, initial=_NEG_INF)
        logprobs[(frames < math.log(prune)) & (frames < largest)] = _NEG_INF
    logprobs[..., blank] = _NEG_INF
    return logprobs


def _top_k(scores: FloatArray, count: int) -> IntArray:
    """Return the largest scores [B, count] of each row [B, n], in descending order, as indices of
    all scores."""
    B, size = scores.shape
    first = np.arange(B)[:, None]
    indices: IntArray
    if size <= count:
        indices = (-scores).argsort(axis=1, kind="stable") + first * size
    else:
        candidates = scores.argpartition(size - count, axis=1)[:, size - count :] + first * size
        order = scores.take(candidates).argsort(axis=1)[:, ::-1] + first * count
        indices = candidates.take(order)
    return indices
