import numpy as np
import pytest

from zoo import DataError, ZooError
from zoo.plugin import TensorSchema
from zoo_preprocessing.text_pair import TextPair
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

WITH_SEGMENTS = TensorSchema(("B", "S"), "integer", below=20, channels=(20, 2))
WITHOUT = WITH_SEGMENTS._replace(channels=(20, None))
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "sat", "mat", "##s", "dog"]


def preprocessor(schema=WITH_SEGMENTS, stored=EXAMPLE_TOKENIZER, **params):
    return TextPair(schema=schema, stored=stored, **params)


def test_known_value_with_a_separator():
    encoded = preprocessor(separator="[MASK]").encode(["the cat", "a mat sat"])
    assert encoded.T.tolist() == [[2, 3, 8, 6, 7, 4], [0, 0, 0, 1, 1, 1]]
    found = preprocessor(WITHOUT, separator="[MASK]").encode("the cat\ta mat sat")
    assert found.tolist() == [2, 3, 8, 6, 7, 4]


@pytest.fixture
def bert(tmp_path):
    transformers = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    return transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))


@pytest.mark.parametrize("max_length", [None, 6])
def test_ids_and_segments_are_those_of_transformers(bert, max_length):
    pairs = [("a cat sat", "dogs"), ("dog", "a cat sat a mat"), ("a cat sat a", "a cat sat a")]
    item = preprocessor(
        stored=bert.backend_tokenizer.to_str(),
        max_length=max_length,
        truncate=max_length is not None,
    )
    for pair, encoded in zip(pairs, item.encode_many(pairs), strict=True):
        expected = bert(*pair, truncation=max_length is not None, max_length=max_length)
        assert encoded[:, 0].tolist() == expected["input_ids"]
        assert encoded[:, 1].tolist() == expected["token_type_ids"]


def test_long_pairs_are_cut_or_rejected():
    short = preprocessor(separator="[MASK]", max_length=4, truncate=True)
    assert short.encode(["the cat sat on", "a"])[:, 0].tolist() == [2, 3, 8, 6]
    assert short.encode(["the", "a mat sat on"])[:, 0].tolist() == [2, 8, 6, 7]
    with pytest.raises(DataError, match="5 tokens, more than max_length 4; set truncate: true"):
        preprocessor(separator="[MASK]", max_length=4).encode(["the cat", "a mat"])


@pytest.mark.parametrize("value", ["one text", ["a", "b", "c"], ["a", 3], "a\tb\tc"])
def test_values_that_are_not_pairs_raise(value):
    with pytest.raises(DataError, match=r"expected two texts.*a tab separates them"):
        preprocessor(separator="[MASK]").encode(value)


def test_texts_that_would_run_together_raise():
    with pytest.raises(ZooError, match="no segments; set separator, or 'segments: 2'"):
        preprocessor(WITHOUT).encode(["a", "mat"])
    with pytest.raises(ZooError, match="no token 'SEP'"):
        preprocessor(separator="SEP").encode(["a", "mat"])
    assert np.array_equal(preprocessor().encode(["a", "mat"]), [[6, 0], [7, 1]])
