"""The search of prefix beams, one item at a time, in numpy.

Letters: W prefixes in the beam, V symbols with the blank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zoo_ctc.language import Language

Labels = tuple[int, ...]
Floats = NDArray[np.float64]
_NEVER = -math.inf


@dataclass(frozen=True)
class Rules:
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
    blank: Floats
    label: Floats
    added: Floats

    @property
    def paths(self) -> Floats:
        return np.logaddexp(self.blank, self.label)


def search(
    frames: Floats, blank: int, rules: Rules, language: Language | None
) -> list[tuple[Labels, float]]:
    """Labels with their scores, best first, of log-probabilities [T, V]."""
    asked = _Asked(language, frames.shape[1], rules)
    beam = _Beam([()], np.zeros(1), np.full(1, _NEVER), np.zeros(1))
    for frame in frames:
        if not beam.prefixes:
            break
        beam = _stepped(beam, frame, blank, rules, asked)
    scores = beam.paths + beam.added + asked.ends(beam.prefixes)
    order = [i for i in _best(scores, rules.width) if scores[i] > _NEVER]
    return [(beam.prefixes[i], float(scores[i])) for i in order]


def _stepped(beam: _Beam, frame: Floats, blank: int, rules: Rules, asked: _Asked) -> _Beam:
    W, V = len(beam.prefixes), len(frame)
    paths, row = beam.paths, np.arange(W)
    last = np.array([prefix[-1] if prefix else blank for prefix in beam.prefixes])
    stay_blank = paths + frame[blank]
    stay_label = np.where(last == blank, _NEVER, beam.label + frame[last])
    grown = paths[:, None] + _extending(frame, blank, rules.prune)  # [W, V]
    again = last != blank  # a label follows itself only after a blank
    grown[row[again], last[again]] += (beam.blank - paths)[again]
    # What grows into a prefix that the beam has already belongs to that one.
    place = {prefix: i for i, prefix in enumerate(beam.prefixes)}
    for i, prefix in enumerate(beam.prefixes):
        parent = place.get(prefix[:-1]) if prefix else None
        if parent is not None:
            stay_label[i] = np.logaddexp(stay_label[i], grown[parent, prefix[-1]])
            grown[parent, prefix[-1]] = _NEVER
    added = beam.added[:, None] + asked.gains(beam.prefixes)  # [W, V]
    stay = np.logaddexp(stay_blank, stay_label) + beam.added
    scores = np.concatenate([stay, (grown + added).ravel()])
    chosen = _best(scores, rules.width)
    chosen = chosen[scores[chosen] > _NEVER]
    kept, new = chosen[chosen < W], chosen[chosen >= W] - W
    parents, labels = new // V, new % V
    return _Beam(
        [beam.prefixes[i] for i in kept]
        + [(*beam.prefixes[p], int(k)) for p, k in zip(parents, labels, strict=True)],
        np.concatenate([stay_blank[kept], np.full(len(new), _NEVER)]),
        np.concatenate([stay_label[kept], grown[parents, labels]]),
        np.concatenate([beam.added[kept], added[parents, labels]]),
    )


def _extending(frame: Floats, blank: int, prune: float) -> Floats:
    """The log-probabilities [V] by which a prefix may grow at this frame."""
    growth = frame.copy()
    if prune > 0:
        growth[(frame < math.log(prune)) & (frame < frame.max())] = _NEVER
    growth[blank] = _NEVER
    return growth


def _best(scores: Floats, count: int) -> NDArray[np.intp]:
    """Where the largest are, best first, the first of equals."""
    if len(scores) > count:
        near = np.sort(np.argpartition(-scores, count - 1)[:count])
    else:
        near = np.arange(len(scores))
    return near[np.argsort(-scores[near], kind="stable")]


class _Asked:
    """What the language model says, each prefix asked about once."""

    def __init__(self, language: Language | None, vocab: int, rules: Rules) -> None:
        self.language = language
        self.vocab = vocab
        self.rules = rules
        self.known: dict[Labels, tuple[Floats, float]] = {}

    def gains(self, prefixes: list[Labels]) -> Floats:
        """What each label would add to each prefix, [W, V]."""
        if self.language is None:
            return np.zeros((len(prefixes), self.vocab))
        self._ask(prefixes)
        rows = np.stack([self.known[prefix][0] for prefix in prefixes])
        return self.rules.weight * rows + self.rules.bonus

    def ends(self, prefixes: list[Labels]) -> Floats:
        """What it adds to each prefix to end there, [W]."""
        if self.language is None:
            return np.zeros(len(prefixes))
        self._ask(prefixes)
        return self.rules.weight * np.array([self.known[prefix][1] for prefix in prefixes])

    def _ask(self, prefixes: list[Labels]) -> None:
        new = [prefix for prefix in prefixes if prefix not in self.known]
        if new and self.language is not None:
            rows, ends = self.language.following(new, self.vocab)
            self.known.update(zip(new, zip(rows, ends.tolist(), strict=True), strict=True))
