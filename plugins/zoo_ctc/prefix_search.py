"""The search of prefix beams, one item at a time, in numpy.

Letters: W prefixes in the beam, V symbols with the blank.
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
    """How the search goes: see CtcPrefixBeam."""

    width: int
    prune: float
    weight: float
    bonus: float


@dataclass(frozen=True)
class _Beam:
    """Prefixes [W], and of each: the log-probability of its paths that end in the blank and in
    its last label, and what the language model and the bonus add."""

    prefixes: list[Labels]
    blank: FloatArray
    label: FloatArray
    lm_scores: FloatArray

    @property
    def total(self) -> FloatArray:
        return np.logaddexp(self.blank, self.label)


def search(
    frames: FloatArray, blank: int, config: BeamConfig, language: LabelLanguageModel | None
) -> list[tuple[Labels, float]]:
    """Labels with their scores, best first, of log-probabilities [T, V]."""
    lm_cache = _LanguageModelCache(language, frames.shape[1], config)
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
    repeats = last != blank  # a label follows itself only after a blank
    extended[row[repeats], last[repeats]] += (beam.blank - total)[repeats]
    # What grows into a prefix that the beam has already belongs to that one.
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
    kept, new = selected[selected < W], selected[selected >= W] - W
    parents, labels = new // V, new % V
    return _Beam(
        [beam.prefixes[i] for i in kept]
        + [(*beam.prefixes[p], int(k)) for p, k in zip(parents, labels, strict=True)],
        np.concatenate([stay_blank[kept], np.full(len(new), _NEG_INF)]),
        np.concatenate([stay_label[kept], extended[parents, labels]]),
        np.concatenate([beam.lm_scores[kept], lm_scores[parents, labels]]),
    )


def _extension_logprobs(frame: FloatArray, blank: int, prune: float) -> FloatArray:
    """The log-probabilities [V] by which a prefix may grow at this frame."""
    logprobs = frame.copy()
    if prune > 0:
        logprobs[(frame < math.log(prune)) & (frame < frame.max())] = _NEG_INF
    logprobs[blank] = _NEG_INF
    return logprobs


def _top_k(scores: FloatArray, count: int) -> NDArray[np.intp]:
    """Where the largest are, best first, the first of equals."""
    if len(scores) > count:
        candidates = np.sort(np.argpartition(-scores, count - 1)[:count])
    else:
        candidates = np.arange(len(scores))
    return candidates[np.argsort(-scores[candidates], kind="stable")]


class _LanguageModelCache:
    """What the language model says, each prefix asked about once."""

    def __init__(self, language: LabelLanguageModel | None, vocab: int, config: BeamConfig) -> None:
        self.language = language
        self.vocab = vocab
        self.config = config
        self.cache: dict[Labels, tuple[FloatArray, float]] = {}

    def extension_scores(self, prefixes: list[Labels]) -> FloatArray:
        """What each label would add to each prefix, [W, V]."""
        if self.language is None:
            return np.zeros((len(prefixes), self.vocab))
        self._fill(prefixes)
        rows = np.stack([self.cache[prefix][0] for prefix in prefixes])
        return self.config.weight * rows + self.config.bonus

    def end_scores(self, prefixes: list[Labels]) -> FloatArray:
        """What it adds to each prefix to end there, [W]."""
        if self.language is None:
            return np.zeros(len(prefixes))
        self._fill(prefixes)
        return self.config.weight * np.array([self.cache[prefix][1] for prefix in prefixes])

    def _fill(self, prefixes: list[Labels]) -> None:
        new = [prefix for prefix in prefixes if prefix not in self.cache]
        if new and self.language is not None:
            rows, end_scores = self.language.next_logprobs(new, self.vocab)
            self.cache.update(zip(new, zip(rows, end_scores.tolist(), strict=True), strict=True))
