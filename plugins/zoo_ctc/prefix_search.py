"""CTC prefix beam search.

Notation: T frames, V vocabulary including the blank.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zoo_ctc.language_model_cache import Labels, LanguageModelCache
from zoo_ctc.language_models import LabelLanguageModel

NEG_INF = -math.inf
Ends = tuple[float, float]
"""Log-probabilities of the paths of a prefix that end in the blank, and in its last label."""
Beam = Mapping[Labels, Ends]


@dataclass(frozen=True)
class PrefixBeamConfig:
    """Parameters of the search; see CtcPrefixBeam."""

    width: int
    prune: float
    weight: float
    length_bonus: float


def search(
    frames: NDArray[np.float64], blank: int, config: PrefixBeamConfig, lm: LabelLanguageModel | None
) -> list[tuple[Labels, float]]:
    """Return the label sequences of log-probabilities [T, V] with their scores, best first.

    Paper: Hannun et al. 2014, algorithm 1.
    """
    cache = None
    if lm is not None:
        cache = LanguageModelCache(lm, frames.shape[1], config.weight, config.length_bonus)
    beam: Beam = {(): (0.0, NEG_INF)}
    lm_scores: dict[Labels, float] = {(): 0.0}
    for frame in frames:
        extended = _extend(beam, frame.tolist(), blank, config.prune)
        if cache is not None and beam:
            _score_labels(lm_scores, list(beam), list(extended), cache)
        scores = {y: np.logaddexp(*ends) + lm_scores.get(y, 0.0) for y, ends in extended.items()}
        beam = {y: extended[y] for y, _ in _best(scores)[: config.width]}
    scores = {y: np.logaddexp(*ends) + lm_scores.get(y, 0.0) for y, ends in beam.items()}
    if cache is not None and beam:
        for y, score in zip(beam, cache.end_scores(list(beam)), strict=True):
            scores[y] += score
    return _best(scores)


def _extend(beam: Beam, frame: Sequence[float], blank: int, prune: float) -> Beam:
    """Return all prefixes that the prefixes of the beam become after a frame [V]."""
    labels = _extension_labels(frame, blank, prune)
    extended: dict[Labels, Ends] = defaultdict(lambda: (NEG_INF, NEG_INF))
    for y, (ends_blank, ends_label) in beam.items():
        total = float(np.logaddexp(ends_blank, ends_label))
        # The prefix stays: with a blank, or with its last label repeated.
        stay = NEG_INF if not y else ends_label + frame[y[-1]]
        extended[y] = (total + frame[blank], float(np.logaddexp(extended[y][1], stay)))
        for label in labels:
            # A label that equals the last one needs a blank in between.
            before = ends_blank if y and y[-1] == label else total
            ends = extended[(*y, label)]
            updated = float(np.logaddexp(ends[1], before + frame[label]))
            extended[(*y, label)] = (ends[0], updated)
    return extended


def _extension_labels(frame: Sequence[float], blank: int, prune: float) -> list[int]:
    """Return the labels that extend prefixes at a frame [V]."""
    lowest = min(math.log(prune), max(frame)) if prune > 0 else NEG_INF
    return [label for label, value in enumerate(frame) if label != blank and value >= lowest]


def _score_labels(
    lm_scores: dict[Labels, float],
    prefixes: list[Labels],
    extended: list[Labels],
    cache: LanguageModelCache,
) -> None:
    """Add the scores of the language model of all extensions of the prefixes."""
    rows = dict(zip(prefixes, cache.extension_scores(prefixes), strict=True))
    for y in extended:
        if y not in lm_scores:
            lm_scores[y] = lm_scores[y[:-1]] + float(rows[y[:-1]][y[-1]])


def _best(scores: Mapping[Labels, float]) -> list[tuple[Labels, float]]:
    """Return the possible label sequences with their scores, best first."""
    possible = [(y, float(score)) for y, score in scores.items() if score > NEG_INF]
    return sorted(possible, key=lambda pair: -pair[1])
