import pytest

from zoo import ZooError
from zoo_memory.dense import Dense
from zoo_recurrent.vocab_size import vocab_size
from zoo_tokens.token import Token


def test_vocab_size_of_a_token_embedding():
    assert vocab_size(Token(vocab=7, dim=2)) == 7


def test_embedding_without_a_vocabulary_raises():
    with pytest.raises(ZooError, match=r"'dense'.*vocabulary"):
        vocab_size(Dense(width=3, dim=3))
