"""Vectors of raw texts."""

import pytest
import torch

import zoo
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

MODEL = {
    "type": "sentence-encoder",
    "source": {"type": "token", "vocab": 9, "dim": 4},
    "encoder": {"type": "gru", "hidden": 4},
}


def compose(**sections):
    model = zoo.compose({"zoo": 1, "name": "tiny", "model": MODEL, **sections})
    model.tokenizer = {"source": EXAMPLE_TOKENIZER}
    return model.train()


def test_vectors_of_texts_are_those_of_their_tokens():
    model = compose(preprocessing={"source": "text"})
    vectors = zoo.embed(model, ["the cat", "mat", "a cat sat"], batch_size=2)
    expected = model.embed({"source": torch.tensor([[2, 3, 0], [7, 0, 0], [6, 3, 4]])})
    torch.testing.assert_close(vectors, expected)
    assert not vectors.requires_grad
    assert model.training


def test_wrong_models_and_inputs_raise():
    with pytest.raises(zoo.ZooError, match="no preprocessor for 'source'"):
        zoo.embed(compose(), ["the cat"])
    model = compose(preprocessing={"source": "text"})
    with pytest.raises(zoo.ZooError, match="expected a list of inputs"):
        zoo.embed(model, 7)
    with pytest.raises(zoo.ZooError, match="batch_size is 0"):
        zoo.embed(model, ["the cat"], batch_size=0)
    with pytest.raises(zoo.DataError, match=r"^input 3: expected a text, found 7"):
        zoo.embed(model, ["the cat", "mat", 7], batch_size=2)
    other = zoo.compose({"zoo": 1, "name": "tiny", "model": {**MODEL, "type": "masked-lm"}})
    with pytest.raises(zoo.ZooError, match="'masked-lm' does not compute one vector"):
        zoo.embed(other, ["the cat"])


def test_the_vector_of_one_text_is_a_row():
    model = compose(preprocessing={"source": "text"})
    torch.testing.assert_close(zoo.embed(model, "the cat"), zoo.embed(model, ["the cat"])[0])
