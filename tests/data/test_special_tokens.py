import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer as Library, models

import zoo
from zoo import ZooError
from zoo.data.special_tokens import (
    add_bos,
    add_special_tokens,
    remove_eos,
    remove_special_tokens,
    tokens_before_eos,
)
from zoo.data.tokenizer import attach_tokenizers
from zoo.plugin import TensorSchema

SPEC = "transformer-tiny"


def make(*words, special=()):
    library = Library(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token=words[-1]))
    library.add_special_tokens([AddedToken(token, special=True) for token in special])
    return library.to_str()


@pytest.fixture(scope="module")
def model():
    return zoo.compose(SPEC)


def test_the_model_of_the_tests_has_these_special_tokens(model):
    assert (model.get_embedding("source").padding, model.bos, model.eos) == (0, 1, 2)


def test_tokenizers_that_fit_are_stored(model):
    fitting = make("<pad>", "<s>", "</s>", "a", "<unk>")
    attach_tokenizers(model, {"source": make("[PAD]", "a", "b"), "target": fitting})
    assert model.tokenizer["target"] == fitting
    attach_tokenizers(model, {"target": make("A", "B", "C", "d", special=["A", "B", "C"])})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "<pad>", "b"], r"'<pad>' has ID 1 in the target tokenizer.*pad token has ID 0"),
        (["<pad>", "</s>", "<s>", "a"], r"'</s>' has ID 1 .*eos token has ID 2"),
        (["<pad>", "a", "<eos>", "<bos>"], r"'<bos>' has ID 3 .*bos token has ID 1"),
        (["the", "cat"], r"ID 0 is the token 'the' in the target tokenizer.*as pad token"),
        (["<pad>", "cat", "</s>"], r"ID 1 is the token 'cat' in the target .*as bos token"),
    ],
)
def test_other_ids_raise_with_the_command_that_makes_a_fitting_one(model, words, message):
    with pytest.raises(ZooError, match=f"{message}; make one .*zoo tokenizer train FILE --for"):
        attach_tokenizers(model, {"target": make(*words)})


def test_the_size_is_checked(model):
    words = ["<pad>", "<s>", "</s>", *(f"w{i}" for i in range(100))]
    with pytest.raises(ZooError, match="target tokenizer has 103 tokens, but the model's target"):
        attach_tokenizers(model, {"target": make(*words)})


def test_keys_of_models_without_embeddings_for_sides():
    model = zoo.compose("memory-network-tiny")
    attach_tokenizers(model, {"story": make("<pad>", "a"), "target": make("<pad>", "a")})
    with pytest.raises(ZooError, match="ID 0 is the token 'a' in the question tokenizer"):
        attach_tokenizers(model, {"question": make("a", "b")})


def test_special_tokens_are_added_in_a_type_that_holds_them_and_removed():
    field = TensorSchema(("B", "S"), "integer", below=300, prefix=(299,), suffix=(2, 3))
    added = add_special_tokens(np.array([5, 6], np.uint8), field)
    assert added.tolist() == [299, 5, 6, 2, 3]
    assert add_special_tokens(np.array([], np.int64), field).tolist() == [299, 2, 3]
    assert remove_special_tokens(added.tolist(), field) == [5, 6]
    assert remove_special_tokens([5, 6], field) == [5, 6]


def test_the_start_token_is_added_once_and_end_tokens_are_removed():
    assert add_bos([5], 1) == add_bos([1, 5], 1) == [1, 5]
    assert add_bos([5], None) == remove_eos([5, 2], (2,)) == remove_eos([5], (2,)) == [5]
    assert tokens_before_eos([5, 2, 6, 2], (2,)) == [5]
