"""Kneser-Ney probabilities against a direct implementation with dictionaries."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from zoo import DataError
from zoo.plugin import ProgramRun
from zoo_language.count_model import CountModelProgram, KneserNey

V, ORDER = 4, 3
RUN = ProgramRun(None, None, torch.device("cpu"), 0)


def _reference(stream, context, word):
    """Return p(word | context) with sums over all n-grams."""
    if not context:
        shorter, n = 1 / V, 1
    else:
        shorter, n = _reference(stream, context[1:], word), len(context) + 1
    grams = [tuple(stream[i : i + n]) for i in range(len(stream) - n + 1)]
    counts = Counter(grams)
    if n < ORDER:
        longer = {tuple(stream[i : i + n + 1]) for i in range(len(stream) - n)}
        counts = Counter(gram[1:] for gram in longer)
    once, twice = (sum(c == k for c in counts.values()) for k in (1, 2))
    discount = once / (once + 2 * twice) if once else 0.5
    following = {gram[-1]: c for gram, c in counts.items() if gram[:-1] == tuple(context) and c}
    total = sum(following.values())
    if not total:
        return shorter
    kept = max(following.get(word, 0) - discount, 0)
    return (kept + discount * len(following) * shorter) / total


def test_probabilities_equal_the_formula_and_sum_to_one():
    stream = np.random.default_rng(0).integers(V - 1, size=40)
    model = KneserNey(stream, ORDER, V)
    contexts = [(0, 1), (2, 2), (1, 3), (3, 0)]  # word 3 was not counted
    for context in contexts:
        p = [math.exp(model.logprobs(np.array([*context, word]))[2]) for word in range(V)]
        expected = [_reference(stream.tolist(), list(context), word) for word in range(V)]
        assert p == pytest.approx(expected)
        assert sum(p) == pytest.approx(1)


def test_the_program_returns_perplexities(tmp_path):
    (tmp_path / "a.txt").write_text("a b\nb a b\n")
    (tmp_path / "b.txt").write_text("b c\n")
    files = {name: str(tmp_path / "a.txt") for name in ("train", "validation")}
    program = CountModelProgram(**files, test=str(tmp_path / "b.txt"), order=2)
    values = program.run(RUN)
    assert 1 < values["validation/perplexity"] < values["test/perplexity"]
    (tmp_path / "b.txt").write_text("")
    with pytest.raises(DataError, match=r"b.txt: the file has no text"):
        program.run(RUN)
