"""CTC prefix beam search of one item, in numpy.

Notation: W prefixes in the beam, V vocabulary including the blank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zoo_ctc.beam_candidates import IntArray, pairs
from zoo_ctc.language_model_cache import Labels, LanguageModelCache
from zoo_ctc.language_models import LabelLanguageModel

FloatArray = NDArray[np.float64]
HASH_ROOT, HASH_FACTOR = 0x1E3779B97F4A7C15, 6364136223846793005
"""Hash of the empty prefix; that of a prefix with another label is hash * HASH_FACTOR + label + 1,
in 64 bits."""
_NEG_INF = -math.inf


@dataclass(frozen=True)
class BeamConfig:
    """Parameters of the search; see CtcPrefixBeam."""

    width: int
    prune: float
    weight: float
    length_bonus: float


class _Beam(NamedTuple):
    """Prefixes [W] and their scores, best first.

    Shapes:
        ends [2, W], the log-probabilities of the paths that end in the blank and in the last label;
        total [W], those of both; lm_scores [W], the scores of the language model with the length
        bonus; keys [4, W]: the last label (the blank for the empty prefix), the number of the
        prefix in the tree, its hash and the hash of the prefix without the last label. Two prefixes
        are equal if their hashes are.
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


def search(
    frames: FloatArray, blank: int, config: BeamConfig, lm: LabelLanguageModel | None
) -> list[tuple[Labels, float]]:
    """Return label sequences with their scores, best first, for log-probabilities [T, V]."""
    T, V = frames.shape
    cache = None
    if lm is not None:
        cache = LanguageModelCache(lm, V, config.weight, config.length_bonus)
    tree = _Tree()
    zero = np.zeros(1)
    keys = np.array([[blank], [0], [HASH_ROOT], [0]])
    beam = _Beam(np.array([[0.0], [_NEG_INF]]), zero, zero, keys)
    extensions = _extension_logprobs(frames, blank, config.prune)
    symbols = np.argsort(-extensions, axis=1, kind="stable")
    ranks = np.argsort(symbols, axis=1)
    ordered = np.take_along_axis(extensions, symbols, axis=1)
    for t in range(T):
        if not len(beam.total):
            break
        beam = _step(beam, frames[t], extensions[t], ordered[t], symbols[t], ranks[t], blank,
                     config.width, tree, cache)  # fmt: skip
    prefixes = [tree.labels(node) for node in beam.keys[1].tolist()]
    scores = beam.total + beam.lm_scores
    if cache is not None:
        scores = scores + cache.end_scores(prefixes)
    order = [i for i in _top_k(scores, config.width) if scores[i] > _NEG_INF]
    return [(prefixes[i], float(scores[i])) for i in order]


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
    W, ends_blank = len(total), beam.ends[0]
    stay = np.empty((2, W))
    np.add(total, frame[blank], out=stay[0])
    np.add(beam.ends[1], frame.take(last), out=stay[1])
    prefix, symbol, number = pairs(W, len(frame), width if cache is None else None)
    extended = np.empty(len(prefix) + 1)  # the last one is for pairs that are not considered
    np.add(total.take(prefix), ordered.take(symbol), out=extended[:-1])
    # A repeated label needs a blank in between.
    last_ranks, last_extensions = ranks.take(last), extensions.take(last)
    extended[number[np.arange(W), last_ranks]] = ends_blank + last_extensions
    # An extension that equals a prefix in the beam is merged with it.
    order = hashes.argsort()
    parents = order.take(hashes.take(order).searchsorted(parent_hashes), mode="clip")
    child = (hashes.take(parents) == parent_hashes).nonzero()[0]
    if len(child):
        parents = parents.take(child)
        repeated = last.take(parents) == last.take(child)
        entering = np.where(repeated, ends_blank.take(parents), total.take(parents))
        entering += last_extensions.take(child)
        stay[1, child] = np.logaddexp(stay[1].take(child), entering)
        extended[number[parents, last_ranks.take(child)]] = _NEG_INF
    totals = np.concatenate([np.logaddexp(stay[0], stay[1]), extended[:-1]])
    scores = totals
    if cache is not None:
        rows = cache.extension_scores([tree.labels(node) for node in nodes.tolist()])
        lm_scores = beam.lm_scores[prefix] + rows[prefix, symbols[symbol]]
        lm_scores = np.concatenate([beam.lm_scores, lm_scores])
        scores = totals + lm_scores
    selected = _top_k(scores, width)
    if scores[selected[-1]] == _NEG_INF:
        selected = selected[scores.take(selected) > _NEG_INF]
    new = (selected >= W).nonzero()[0]
    pair = selected.take(new) - W
    source = selected.copy()
    source[new] = prefix.take(pair)
    labels = symbols.take(symbol.take(pair))
    ends, keys = stay.take(source, axis=1), beam.keys.take(source, axis=1)
    ends[0, new], ends[1, new] = _NEG_INF, extended.take(pair)
    added = keys[2].take(new)
    keys[0, new] = labels
    keys[1, new] = tree.add(keys[1].take(new), labels)
    keys[2, new] = added * HASH_FACTOR + (labels + 1)
    keys[3, new] = added
    lm_scores = beam.lm_scores.take(source) if cache is None else lm_scores.take(selected)
    return _Beam(ends, totals.take(selected), lm_scores, keys)


def _extension_logprobs(frames: FloatArray, blank: int, prune: float) -> FloatArray:
    """Return the log-probabilities [T, V] of extending a prefix at each frame."""
    logprobs = frames.copy()
    if prune > 0:
        largest = frames.max(axis=1, keepdims=True, initial=_NEG_INF)
        logprobs[(frames < math.log(prune)) & (frames < largest)] = _NEG_INF
    logprobs[:, blank] = _NEG_INF
    return logprobs


def _top_k(scores: FloatArray, count: int) -> IntArray:
    """Return the indices of the largest scores in descending order."""
    size = len(scores)
    if size > count:
        candidates = scores.argpartition(size - count)[size - count :]
        return candidates.take(scores.take(candidates).argsort()[::-1])
    return (-scores).argsort(kind="stable")
