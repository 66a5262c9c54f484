import numpy as np
import pytest

from zoo import DataError, ZooError
from zoo.plugin import TensorSchema, Tokenizer
from zoo_preprocessing.text import Text
from zoo_preprocessing.text_list import TextList
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

WORDS = TensorSchema(("B", "S"), "integer", below=9)
STORY = TensorSchema(("B", "N", "W"), "integer", below=9)


def text(schema=WORDS, stored=EXAMPLE_TOKENIZER, **params):
    return Text(schema=schema, stored=stored, **params)


def test_known_values():
    assert text().encode("the cat sat").tolist() == [2, 3, 4]
    assert text().encode("the dog").tolist() == [2, 1]
    assert text().encode("").tolist() == []
    assert text(lowercase=True).encode("The CAT").tolist() == [2, 3]
    assert text().decode([2, 3]) == "the cat"


def test_the_ids_are_those_of_the_library():
    import tokenizers

    library = tokenizers.Tokenizer.from_str(EXAMPLE_TOKENIZER)
    texts = ["the cat", "a mat sat on", "unknown words"]
    found = [row.tolist() for row in text().encode_many(texts)]
    assert found == [library.encode(each).ids for each in texts]


def test_long_texts_raise_or_are_cut():
    with pytest.raises(DataError, match=r"has 3 tokens, more than max_length 2; set truncate"):
        text(max_length=2).encode("the cat sat")
    assert text(max_length=2, truncate=True).encode("the cat sat").tolist() == [2, 3]


def test_a_model_with_one_class_for_each_item_takes_texts_of_one_token():
    answer = text(TensorSchema(("B",), "integer", below=9))
    assert answer.encode("mat").shape == ()
    assert answer.encode("mat") == 7
    with pytest.raises(DataError, match=r"'the mat' has 2 tokens.*--type words"):
        answer.encode("the mat")


def test_padding_and_end_tokens_in_a_text_raise():
    with pytest.raises(DataError, match="contains '<pad>', which the model uses as a padding"):
        text().encode("the <pad>")


def test_tokens_that_the_post_processor_adds_are_not_added_twice():
    import tokenizers

    library = tokenizers.Tokenizer.from_str(EXAMPLE_TOKENIZER)
    library.post_processor = tokenizers.processors.TemplateProcessing(
        single="sat $A mat", special_tokens=[("sat", 4), ("mat", 7)]
    )
    schema = WORDS._replace(prefix=(4,), suffix=(7,))
    assert text(schema, library.to_str()).encode("the cat").tolist() == [2, 3]
    assert text(stored=library.to_str()).encode("the cat").tolist() == [4, 2, 3, 7]


def test_the_tokenizer_is_read_from_its_file_at_first_use(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENIZERS", str(tmp_path))
    late = text(stored=None, tokenizer="$TOKENIZERS/t.json")
    with pytest.raises(DataError, match=r"t\.json: the tokenizer file does not exist.*zoo tokeniz"):
        late.encode("a")
    (tmp_path / "t.json").write_text(EXAMPLE_TOKENIZER)
    assert late.encode("a").tolist() == [6]
    assert late.stored() == EXAMPLE_TOKENIZER
    with pytest.raises(ZooError, match="has no tokenizer; make one with: zoo tokenizer train"):
        text(stored=None).encode("a")


def test_a_tokenizer_with_too_many_tokens_raises():
    with pytest.raises(ZooError, match="tokenizer has 9 tokens, but the model's vocabulary has 8"):
        text(WORDS._replace(below=8)).encode("a")


def test_a_model_that_does_not_take_tokens_is_rejected():
    with pytest.raises(ZooError, match=r"makes token IDs \[B\] or \[B, S\].*float \[B, L\]"):
        text(TensorSchema(("B", "L"), "float")).outputs("source")
    with pytest.raises(ZooError, match=r"makes token IDs \[B, N, W\].*integer \[B, S\]"):
        TextList(schema=WORDS, stored=EXAMPLE_TOKENIZER).outputs("story")


def test_a_list_of_texts_is_padded():
    story = TextList(schema=STORY._replace(pad=8), stored=EXAMPLE_TOKENIZER, max_texts=2)
    expected = [[2, 3, 4], [6, 8, 8]]
    assert story.encode(["sat", "the cat sat", "a"]).tolist() == expected
    for wrong in ([], "the cat", None):
        with pytest.raises(DataError, match="list of texts"):
            story.encode(wrong)


def test_special_tokens_in_a_text_are_ordinary_text():
    literal = Tokenizer(EXAMPLE_TOKENIZER, literal=True)
    assert literal.special_ids() == {0: "<pad>"}
    assert literal.encode(["the<pad>"]) == [[1]]
    assert Tokenizer(EXAMPLE_TOKENIZER).encode(["the<pad>"]) == [[2, 0]]
    np.testing.assert_array_equal(text().encode("the<pad>"), [1])


def test_a_list_of_texts_has_the_width_of_the_schema():
    story = TextList(schema=STORY.with_dims("B", "N", 3), stored=EXAMPLE_TOKENIZER)
    assert story.encode(["the cat", "sat"]).tolist() == [[2, 3, 0], [4, 0, 0]]
    with pytest.raises(DataError, match="a text has 4 tokens, but the model takes 3"):
        story.encode(["the cat sat on"])


@pytest.mark.parametrize(
    "schema", [TensorSchema(("B", "N", 3)), TensorSchema(("B", "N", 2), "integer", below="N")]
)
def test_values_that_are_not_token_ids_are_rejected(schema):
    with pytest.raises(ZooError, match="makes token IDs"):
        TextList(schema=schema, stored=EXAMPLE_TOKENIZER).outputs("target")
