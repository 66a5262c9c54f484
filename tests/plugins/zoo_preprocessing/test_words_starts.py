import numpy as np
import pytest

from zoo import DataError
from zoo.plugin import TensorSchema
from zoo_preprocessing.words import Words

SCHEMA = TensorSchema(("B", "S"), "integer", below=20)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "sat", "mat", "##s", "dog", "."]


@pytest.fixture
def bert(tmp_path):
    transformers = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    return transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))


def encode(item, value):
    arrays = item.transform("source", item.encode(value), np.random.default_rng(0))
    return arrays["source"].tolist(), arrays["starts"].tolist()


def test_pieces_and_first_tokens_are_those_of_transformers(bert):
    item = Words(schema=SCHEMA, stored=bert.backend_tokenizer.to_str())
    words = ["a", "cats", "sat", "mats", "dog"]
    expected = bert(words, is_split_into_words=True)
    first = [expected.word_ids().index(number) for number in range(len(words))]
    assert encode(item, words) == (expected["input_ids"], first)
    assert first == [1, 2, 4, 5, 7]
    arrays = item.transform("source", item.encode(words), np.random.default_rng(0))
    assert arrays["ends"].tolist() == [1, 3, 4, 6, 7]


def test_a_text_is_divided_into_words(bert):
    item = Words(schema=SCHEMA, stored=bert.backend_tokenizer.to_str())
    assert item.position_names("a cat, sat.") == ["a", "cat", ",", "sat", "."]
    assert encode(item, "a cats.") == ([2, 4, 5, 8, 10, 3], [1, 2, 4])


def test_what_cannot_be_encoded_raises(bert):
    item = Words(schema=SCHEMA, stored=bert.backend_tokenizer.to_str(), max_length=4)
    with pytest.raises(DataError, match="3 words have 5 tokens, more than max_length 4"):
        item.encode(["a", "cat", "sat"])
    with pytest.raises(DataError, match=r"the word '\\x00' has no tokens"):
        item.encode(["a", "\x00"])
    for value in ([], ["a", 3], "  "):
        with pytest.raises(DataError, match="expected a list of words"):
            item.encode(value)
