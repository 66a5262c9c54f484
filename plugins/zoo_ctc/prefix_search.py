"""CTC prefix beam search of one item, in numpy.

Notation: W prefixes in the beam, V vocabulary including the blank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zoo_ctc.language_models import LabelLanguageModel

Labels = tuple[int, ...]
FloatArray = NDArray[np.float64]
_NEG_INF = -math.inf


@dataclass(frozen=True)
class BeamConfig:
    """Parameters of the search; see CtcPrefixBeam."""

    width: int
    prune: float
    weight: float
    length_bonus: float


@dataclass(frozen=True)
class _Beam:
    """Prefixes [W] and their scores.

    ``blank`` and ``label`` are the log-probabilities of the paths that end in the blank and in the
    last label; ``lm_scores`` are the scores of the language model with the length bonus.
    """

    prefixes: list[Labels]
    blank: FloatArray
    label: FloatArray
    lm_scores: FloatArray

    @property
    def total(self) -> FloatArray:
        return np.logaddexp(self.blank, self.label)


def search(
    frames: FloatArray, blank: int, config: BeamConfig, lm: LabelLanguageModel | None
) -> list[tuple[Labels, float]]:
    """Return label sequences with their scores, best first, for log-probabilities [T, V]."""
    lm_cache = _LanguageModelCache(lm, frames.shape[1], config)
    beam = _Beam([()], np.zeros(1), np.full(1, _NEG_INF), np.zeros(1))
    for frame in frames:
        if not beam.prefixes:
            break
        beam = _step(beam, frame, blank, config, lm_cache)
    scores = beam.total + beam.lm_scores + lm_cache.end_scores(beam.prefixes)
    order = [i for i in _top_k(scores, config.width) if scores[i] > _NEG_INF]
    return [(beam.prefixes[i], float(scores[i])) for i in order]


def _step(
    beam: _Beam, frame: FloatArray, blank: int, config: BeamConfig, lm_cache: _LanguageModelCache
) -> _Beam:
    W, V = len(beam.prefixes), len(frame)
    total, row = beam.total, np.arange(W)
    last = np.array([prefix[-1] if prefix else blank for prefix in beam.prefixes])
    stay_blank = total + frame[blank]
    stay_label = np.where(last == blank, _NEG_INF, beam.label + frame[last])
    extended = total[:, None] + _extension_logprobs(frame, blank, config.prune)  # [W, V]
    repeats = last != blank  # a repeated label needs a blank in between
    extended[row[repeats], last[repeats]] += (beam.blank - total)[repeats]
    # An extension that equals a prefix in the beam is merged with it.
    index = {prefix: i for i, prefix in enumerate(beam.prefixes)}
    for i, prefix in enumerate(beam.prefixes):
        parent = index.get(prefix[:-1]) if prefix else None
        if parent is not None:
            stay_label[i] = np.logaddexp(stay_label[i], extended[parent, prefix[-1]])
            extended[parent, prefix[-1]] = _NEG_INF
    lm_scores = beam.lm_scores[:, None] + lm_cache.extension_scores(beam.prefixes)  # [W, V]
    stay = np.logaddexp(stay_blank, stay_label) + beam.lm_scores
    scores = np.concatenate([stay, (extended + lm_scores).ravel()])
    selected = _top_k(scores, config.width)
    selected = selected[scores[selected] > _NEG_INF]
    staying, new = selected[selected < W], selected[selected >= W] - W
    parents, labels = new // V, new % V
    return _Beam(
        [beam.prefixes[i] for i in staying]
        + [(*beam.prefixes[p], int(k)) for p, k in zip(parents, labels, strict=True)],
        np.concatenate([stay_blank[staying], np.full(len(new), _NEG_INF)]),
        np.concatenate([stay_label[staying], extended[parents, labels]]),
        np.concatenate([beam.lm_scores[staying], lm_scores[parents, labels]]),
    )


def _extension_logprobs(frame: FloatArray, blank: int, prune: float) -> FloatArray:
    """Return the log-probabilities [V] of extending a prefix at this frame."""
    logprobs = frame.copy()
    if prune > 0:
        logprobs[(frame < math.log(prune)) & (frame < frame.max())] = _NEG_INF
    logprobs[blank] = _NEG_INF
    return logprobs


def _top_k(scores: FloatArray, count: int) -> NDArray[np.intp]:
    """Return the indices of the largest scores in descending order, lower indices first."""
    if len(scores) > count:
        candidates = np.sort(np.argpartition(-scores, count - 1)[:count])
    else:
        candidates = np.arange(len(scores))
    return candidates[np.argsort(-scores[candidates], kind="stable")]


class _LanguageModelCache:
    """Cache of the language model's scores by prefix."""

    def __init__(self, lm: LabelLanguageModel | None, vocab: int, config: BeamConfig) -> None:
        self.lm = lm
        self.vocab = vocab
        self.config = config
        self.cache: dict[Labels, tuple[FloatArray, float]] = {}

    def extension_scores(self, prefixes: list[Labels]) -> FloatArray:
        """Return the score of extending each prefix by each label, [W, V]."""
        if self.lm is None:
            return np.zeros((len(prefixes), self.vocab))
        self._fill(prefixes)
        rows = np.stack([self.cache[prefix][0] for prefix in prefixes])
        return self.config.weight * rows + self.config.length_bonus

    def end_scores(self, prefixes: list[Labels]) -> FloatArray:
        """Return the score of ending after each prefix, [W]."""
        if self.lm is None:
            return np.zeros(len(prefixes))
        self._fill(prefixes)
        return self.config.weight * np.array([self.cache[prefix][1] for prefix in prefixes])

    def _fill(self, prefixes: list[Labels]) -> None:
        new = [prefix for prefix in prefixes if prefix not in self.cache]
        if new and self.lm is not None:
            rows, end_scores = self.lm.next_logprobs(new, self.vocab)
            self.cache.update(zip(new, zip(rows, end_scores.tolist(), strict=True), strict=True))
