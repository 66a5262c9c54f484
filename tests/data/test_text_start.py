"""The start of a text has the first tokens of the whole text."""

import random

import pytest
from tokenizers import Regex, normalizers, pre_tokenizers

import zoo
from zoo.data.text_start import _PATTERNS, TextStart
from zoo.data.tokenizer import Tokenizer

PARTS = [
    *"aabbcdeXY019.,!?'\"-_éΣς漢字▁😀",
    *[" "] * 12,
    *("  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u0301", "\u200d", "\u2028", "\x85", "\ufeff"),
    *("'s", "I'm", "ﬁ", "</s>", "1234567"),
]


def make_texts(rng, count):
    return ["".join(rng.choices(PARTS, k=rng.randint(60, 600))) for _ in range(count)]


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "train.txt"
    text = "\n".join(make_texts(random.Random(0), 40))
    path.write_text(text, encoding="utf-8", newline="")
    return lambda kind: Tokenizer(zoo.train_tokenizer(path, type=kind, vocab=400).json)


def assert_equal_starts(tokenizer):
    rng, cut = random.Random(1), 0
    for text in make_texts(rng, 40):
        count = rng.randint(1, 8)
        start = tokenizer.start_of(text, count)
        ids, expected = tokenizer.encode([start, text])
        assert text.startswith(start)
        assert ids == expected[: len(ids)]
        assert len(ids) > count or start == text
        cut += start != text
    assert cut > 20


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "words", "characters"])
def test_starts_of_trained_tokenizers_are_equal(train, kind):
    assert_equal_starts(train(kind))


@pytest.mark.parametrize("pattern", sorted(_PATTERNS))
def test_starts_with_the_patterns_of_published_tokenizers_are_equal(train, pattern):
    tokenizer = train("bpe")
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    join = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.backend.pre_tokenizer = pre_tokenizers.Sequence([split, join])
    tokenizer.backend.normalizer = normalizers.NFKC()
    assert_equal_starts(tokenizer)


@pytest.mark.parametrize("name", ["BertPreTokenizer", "Whitespace", "WhitespaceSplit"])
def test_starts_of_bert_are_equal(train, name):
    tokenizer = train("wordpiece")
    tokenizer.backend.normalizer = normalizers.BertNormalizer()
    tokenizer.backend.pre_tokenizer = getattr(pre_tokenizers, name)()
    assert_equal_starts(tokenizer)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("normalizer", normalizers.Replace("a", "b")),
        ("normalizer", normalizers.BertNormalizer()),  # adds spaces, which are tokens
        ("pre_tokenizer", pre_tokenizers.ByteLevel(use_regex=False)),
        ("pre_tokenizer", pre_tokenizers.Split(Regex("a .*"), "isolated")),
        ("pre_tokenizer", pre_tokenizers.Metaspace(split=False)),
    ],
)
def test_texts_of_other_tokenizers_are_not_cut(train, part, value):
    tokenizer = train("bpe")
    setattr(tokenizer.backend, part, value)
    assert not TextStart(tokenizer.backend).is_known
    assert tokenizer.start_of("a b " * 1000, 2) == "a b " * 1000


def test_added_tokens_with_spaces_are_not_cut(train):
    tokenizer = train("bpe")
    tokenizer.backend.add_tokens(["a b"])
    assert tokenizer.start_of("a b " * 1000, 2) == "a b " * 1000


def test_the_start_is_extended_until_it_has_enough_tokens(train):
    tokenizer = train("words")
    text = " " * 300 + "a b c d " + "e" * 5000 + " f"
    assert tokenizer.start_of(text, 3) == text[: text.index("e") - 1]
    assert tokenizer.start_of(text, 4) == text
    assert tokenizer.start_of("a" * 5000, 1) == "a" * 5000
