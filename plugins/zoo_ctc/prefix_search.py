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

    ``blank`` and ``label`` are the log-probabilities of the paths that end in the blank and in the
    last label, ``total`` of both; ``lm_scores`` are the scores of the language model with the
    length bonus. ``last`` is the last label, the blank for the empty prefix. ``nodes`` are their
    numbers in the tree of prefixes. Two prefixes are equal if their hashes are.
    """

    blank: FloatArray
    label: FloatArray
    total: FloatArray
    lm_scores: FloatArray
    last: IntArray
    nodes: IntArray
    hashes: NDArray[np.uint64]
    parent_hashes: NDArray[np.uint64]


class _Tree:
    """Prefixes as nodes with a parent and a last label; node 0 is the empty prefix."""

    def __init__(self, nodes: int) -> None:
        self.parent = np.zeros(nodes, dtype=np.intp)
        self.label = np.zeros(nodes, dtype=np.intp)
        self.size = 1

    def add(self, parents: IntArray, labels: IntArray) -> IntArray:
        nodes = np.arange(self.size, self.size + len(parents))
        self.parent[nodes], self.label[nodes] = parents, labels
        self.size += len(parents)
        return nodes

    def labels(self, node: int) -> Labels:
        reversed_labels = []
        while node:
            reversed_labels.append(int(self.label[node]))
            node = int(self.parent[node])
        return tuple(reversed_labels[::-1])


def search(
    frames: FloatArray, blank: int, config: BeamConfig, lm: LabelLanguageModel | None
) -> list[tuple[Labels, float]]:
    """Return label sequences with their scores, best first, for log-probabilities [T, V]."""
    T, V = frames.shape
    cache = None
    if lm is not None:
        cache = LanguageModelCache(lm, V, config.weight, config.length_bonus)
    tree = _Tree(T * config.width + 1)
    one, none = np.zeros(1), np.full(1, _NEG_INF)
    zero, root = np.zeros(1, dtype=np.intp), np.full(1, HASH_ROOT, dtype=np.uint64)
    beam = _Beam(one, none, one, one, zero + blank, zero, root, np.zeros_like(root))
    extensions = _extension_logprobs(frames, blank, config.prune)
    symbols = np.argsort(-extensions, axis=1, kind="stable")
    ranks = np.argsort(symbols, axis=1)
    ordered = np.take_along_axis(extensions, symbols, axis=1)
    for t in range(T):
        if not len(beam.total):
            break
        beam = _step(beam, frames[t], extensions[t], ordered[t], symbols[t], ranks[t], blank,
                     config.width, tree, cache)  # fmt: skip
    prefixes = [tree.labels(node) for node in beam.nodes.tolist()]
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
    W, last, total = len(beam.total), beam.last, beam.total
    stay_blank = total + frame[blank]
    stay_label = beam.label + frame.take(last)
    prefix, symbol, index = pairs(W, len(frame), width if cache is None else None)
    extended = np.empty(len(prefix) + 1)  # the last one is for pairs that are not considered
    np.add(total.take(prefix), ordered.take(symbol), out=extended[:-1])
    # A repeated label needs a blank in between.
    last_ranks, last_extensions = ranks.take(last), extensions.take(last)
    extended[index[np.arange(W), last_ranks]] = beam.blank + last_extensions
    # An extension that equals a prefix in the beam is merged with it.
    order = beam.hashes.argsort()
    found = beam.hashes.take(order).searchsorted(beam.parent_hashes)
    parents = order.take(found, mode="clip")
    child = (beam.hashes.take(parents) == beam.parent_hashes).nonzero()[0]
    if len(child):
        parents = parents.take(child)
        repeated = last.take(parents) == last.take(child)
        entering = np.where(repeated, beam.blank.take(parents), total.take(parents))
        entering += last_extensions.take(child)
        stay_label[child] = np.logaddexp(stay_label.take(child), entering)
        extended[index[parents, last_ranks.take(child)]] = _NEG_INF
    totals = np.concatenate([np.logaddexp(stay_blank, stay_label), extended[:-1]])
    scores = totals
    if cache is not None:
        rows = cache.extension_scores([tree.labels(node) for node in beam.nodes.tolist()])
        lm_scores = beam.lm_scores[prefix] + rows[prefix, symbols[symbol]]
        lm_scores = np.concatenate([beam.lm_scores, lm_scores])
        scores = totals + lm_scores
    selected = _top_k(scores, width)
    selected = selected[scores.take(selected) > _NEG_INF]
    new = (selected >= W).nonzero()[0]
    pair = selected.take(new) - W
    source = selected.copy()
    source[new] = prefix.take(pair)
    chosen = symbols.take(symbol.take(pair))
    result = _Beam(
        stay_blank.take(source),
        stay_label.take(source),
        totals.take(selected),
        beam.lm_scores.take(source) if cache is None else lm_scores.take(selected),
        last.take(source),
        beam.nodes.take(source),
        beam.hashes.take(source),
        beam.parent_hashes.take(source),
    )
    result.blank[new], result.label[new] = _NEG_INF, extended.take(pair)
    hashes = result.hashes.take(new)
    result.parent_hashes[new] = hashes
    result.hashes[new] = hashes * np.uint64(HASH_FACTOR) + (chosen + 1).astype(np.uint64)
    result.last[new] = chosen
    result.nodes[new] = tree.add(result.nodes.take(new), chosen)
    return result


def _extension_logprobs(frames: FloatArray, blank: int, prune: float) -> FloatArray:
    """Return the log-probabilities [T, V] of extending a prefix at each frame."""
    logprobs = frames.copy()
    if prune > 0:
        largest = frames.max(axis=1, keepdims=True, initial=_NEG_INF)
        logprobs[(frames < math.log(prune)) & (frames < largest)] = _NEG_INF
    logprobs[:, blank] = _NEG_INF
    return logprobs


def _top_k(scores: FloatArray, count: int) -> IntArray:
    """Return the indices of the largest scores in descending order, lower indices first."""
    size = len(scores)
    if size > count:
        candidates = scores.argpartition(size - count)[size - count :]
        candidates.sort()
    else:
        candidates = np.arange(size)
    return candidates.take((-scores.take(candidates)).argsort(kind="stable"))
