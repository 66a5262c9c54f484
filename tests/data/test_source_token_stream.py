import numpy as np
import pytest

from zoo.data.source import TokenStream
from zoo.data.token_table import TokenTable
from zoo.interfaces import TensorSchema

TEXTS = [[9, 3, 4, 9], [9, 9], [9, 5, 9], [9, 6, 7, 8, 9]]


def _stream(texts, prefix, suffix):
    offsets = np.cumsum([0, *map(len, texts)])
    table = TokenTable(np.array([token for text in texts for token in text]), offsets)
    schema = TensorSchema(("B", "T"), "integer", prefix=prefix, suffix=suffix)
    return TokenStream(table, schema)


def test_a_token_that_starts_and_ends_texts_is_between_them_once():
    stream = _stream(TEXTS, (9,), (9,))
    expected = [9, 3, 4, 9, 9, 5, 9, 6, 7, 8, 9]
    assert len(stream) == len(expected)
    assert stream[np.arange(len(stream))].tolist() == expected
    assert stream.texts(np.arange(len(stream))).tolist() == [0, 0, 0, 0, 1, 2, 2, 3, 3, 3, 3]


@pytest.mark.parametrize(("prefix", "suffix"), [((9,), (2,)), ((), (9,)), ((9,), ()), ((), ())])
def test_other_texts_are_not_changed(prefix, suffix):
    stream = _stream(TEXTS, prefix, suffix)
    assert stream[np.arange(len(stream))].tolist() == [token for text in TEXTS for token in text]


def test_blocks_are_padded_at_the_end():
    stream = _stream(TEXTS, (9,), (9,))
    ids, lengths = stream.pad_blocks(np.array([0, 4, 8]), 5, -1)
    assert ids.tolist() == [[9, 3, 4, 9, 9], [9, 5, 9, 6, 7], [7, 8, 9, -1, -1]]
    assert lengths.tolist() == [5, 5, 3]
