"""Texts for metrics: random pairs, edge cases, and a corpus with recorded scores."""

import json
import lzma
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("ZOO_DATA", ROOT.parent / "shared" / "data"))
FIXTURES = DATA / "metrics-fixtures" / "mt.json.xz"

Corpus = tuple[list[str], list[list[str]]]

ENGLISH = "the a on and cat cats dog dogs runs running ran quickly The Cat mat, mat. It's 3.5 x"
NON_ENGLISH = "кот коты прилег на лавку Ёлка naïve café cafe\u0301 straße 猫 座った 🐈"
WORDS = f"{ENGLISH} {NON_ENGLISH}".split(" ")

EDGE_CASES: dict[str, Corpus] = {
    "empty prediction": ([""], [["the cat sat on the mat"]]),
    "empty reference": (["the cat"], [[""]]),
    "both empty": (["", ""], [[""], ["", ""]]),
    "empty prediction among others": (
        ["", "the cat sat on a mat"],
        [["a b"], ["the cat sat on mat"]],
    ),
    "empty reference among others": (["a b", "the cat sat"], [["", "a"], ["the cat sat down"]]),
    "only spaces": (["  \t "], [["   "]]),
    "repeated spaces": (["  the   cat \t sat "], [["the cat sat "]]),
    "one correct word": (["cat"], [["cat"]]),
    "one incorrect word": (["cat"], [["dog"]]),
    "one word of many": (["cat"], [["the cat sat on the mat"]]),
    "repeated word": (["the the the the the the"], [["the cat the"]]),
    "many references": (["the cat sat"], [[f"the {w} sat here" for w in WORDS] + ["a cat sat"]]),
    "repeated reference": (["the cat sat on"], [["the cat sat"] * 9]),
    "Cyrillic": (["рыжий кот прилег на лавку"], [["Рыжий кот лежит на диване"]]),
    "no spaces": (["猫が座った", "犬が走った。"], [["猫は座った"], ["犬も走った。"]]),
    "composed and decomposed": (["café"], [["cafe\u0301"]]),
    "emoji and invisible characters": (["👩‍👩‍👧 a\u200bb\u00a0c"], [["👩 a\u200bb c"]]),
    "unusual line breaks": (["a\u2028b\x85c d"], [["a b c d"]]),
    "right to left": (["שלום עולם"], [["שלום לעולם", "عالم"]]),
    "entities and markup": (["a &quot;b&quot; <c>"], [['a "b" <c>']]),
    "case only": (["THE CAT İSTANBUL"], [["the cat i̇stanbul"]]),
}


@pytest.fixture(scope="session")
def pairs() -> Corpus:
    """240 predictions, each a modified copy of one of its one to three references."""
    rng = random.Random(7)
    predictions, references = [], []
    for i in range(240):
        texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 14))) for _ in range(1 + i % 3)]
        words = [word for word in rng.choice(texts).split() if rng.random() < 0.9]
        words = [word if rng.random() < 0.85 else rng.choice(WORDS) for word in words]
        if rng.random() < 0.2:
            rng.shuffle(words)
        predictions.append(" ".join(words))
        references.append(texts)
    return predictions, references


@pytest.fixture(params=EDGE_CASES.values(), ids=EDGE_CASES)
def edge_case(request: pytest.FixtureRequest) -> Corpus:
    return request.param


@pytest.fixture(scope="session")
def recorded_scores() -> dict[str, Any]:
    """A corpus with recorded scores of sacrebleu."""
    if not FIXTURES.exists():
        pytest.skip(f"no fixtures at {FIXTURES}; set ZOO_DATA")
    with lzma.open(FIXTURES, "rt", encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture(scope="session")
def captions() -> dict[str, Any]:
    """120 predictions with three references each, and scores of the reference programs."""
    return json.loads((ROOT / "tests" / "recorded" / "metrics" / "captions.json").read_text())


@pytest.fixture(scope="session")
def caption_texts(captions: dict[str, Any]) -> Corpus:
    items = captions["items"]
    return [item["prediction"] for item in items], [item["references"] for item in items]


@pytest.fixture(scope="session")
def score() -> Callable[..., float]:
    """A function that updates a metric once and returns its value, or its values if several."""

    def score(metric: Any, predictions: list[str], references: list[list[str]]) -> Any:
        metric.update(predictions, references)
        values = metric.compute()
        return values.get(metric.name, values)

    return score
