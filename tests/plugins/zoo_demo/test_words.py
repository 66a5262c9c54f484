import pytest
from demo_kit import TEXTS

from zoo.data.tokenizer import Tokenizer
from zoo.data.tokenizer_training import train_on_texts
from zoo_demo.words import Word, split_words


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(train_on_texts(lambda: iter(TEXTS), vocab=270).json)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Onde fica a estação?", ["Onde", "fica", "a", "estação", "?"]),
        ("«Olá», disse-me ele...", ["«", "Olá", "»,", "disse-me", "ele", "..."]),
        ("日本 👍🏽 x", ["日本", "👍🏽", "x"]),
    ],
)
def test_tokens_of_bytes_are_merged_to_words(tokenizer, text, words):
    (ids,) = tokenizer.encode([text])
    found = split_words(tokenizer, ids)
    assert [word.text for word in found] == words
    assert [position for word in found for position in word.positions] == list(range(len(ids)))


def test_a_token_belongs_to_the_word_that_it_decodes_to(tokenizer):
    first, second = tokenizer.encode(["casa", " branca"])
    words = split_words(tokenizer, [*first, *second])
    border = len(first)
    total = border + len(second)
    assert words == [
        Word("casa", list(range(border))),
        Word("branca", list(range(border, total))),
    ]


def test_tokens_without_text_belong_to_a_neighbour(tokenizer):
    unknown, (ids,) = 1, tokenizer.encode(["casa"])
    assert split_words(tokenizer, [unknown, *ids, unknown]) == [
        Word("casa", list(range(len(ids) + 2)))
    ]
    assert split_words(tokenizer, [unknown]) == [Word("·", [0])]
    assert split_words(tokenizer, []) == []
