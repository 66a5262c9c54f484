import json

import numpy as np
import pytest

import zoo
from zoo import ZooError
from zoo.plugin import TensorSchema
from zoo_preprocessing.split_text import EXAMPLE_PIECES, SplitText
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

SCHEMA = TensorSchema(("B", "S"), "integer", below=9)
C, A, T, AT, CAT = 2, 3, 4, 5, 6


def split_text(stored=EXAMPLE_PIECES, **params):
    return SplitText(schema=SCHEMA, stored=stored, **params)


def split(array, rng, **params):
    return split_text(**params).transform("source", np.array(array), rng)["source"].tolist()


class Fixed:
    """Random numbers that are given in advance, one list for each round."""

    def __init__(self, *rounds):
        self.rounds = [np.array(numbers) for numbers in rounds]

    def random(self, count):
        numbers = self.rounds.pop(0)
        assert len(numbers) == count
        return numbers


def test_known_value():
    # The first 'cat' is split, and its 'at' again; the 'at' that was there keeps its one chance.
    rng = Fixed([0.05, 0.5, 0.5], [0.0, 0.05, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0])
    assert split([CAT, CAT, AT], rng) == [C, A, T, CAT, AT]


def test_all_tokens_are_split_to_characters_with_rate_1_and_none_with_0():
    rng = np.random.default_rng(0)
    assert split([CAT, AT, C], rng, rate=1.0) == [C, A, T, A, T, C]
    assert split([CAT, AT, C], rng, rate=0.0) == [CAT, AT, C]


def test_a_token_is_split_with_the_given_probability():
    found = split([CAT] * 50_000, np.random.default_rng(0), rate=0.2)
    assert found.count(CAT) == pytest.approx(0.8 * 50_000, rel=0.01)
    assert found.count(A) == pytest.approx(0.2 * 0.2 * 50_000, rel=0.05)


def test_the_text_is_unchanged_and_the_length_limit_is_that_of_the_text():
    preprocessor = split_text(rate=0.5, max_length=3)
    encoded = preprocessor.encode("cat at")
    assert encoded.tolist() == [CAT, AT]
    rng = np.random.default_rng(3)
    pieces = json.loads(EXAMPLE_PIECES)["model"]["vocab"]
    names = {number: piece for piece, number in pieces.items()}
    for _ in range(20):
        array = preprocessor.transform("source", encoded, rng)["source"]
        assert "".join(names[number] for number in array.tolist()) == "catat"


def test_merges_may_be_written_as_texts_with_a_prefix_of_continued_pieces():
    data = json.loads(EXAMPLE_PIECES)
    data["model"] |= {
        "continuing_subword_prefix": "##",
        "vocab": {"<pad>": 0, "<unk>": 1, "c": 2, "##a": 3, "##t": 4, "##at": 5, "cat": 6},
        "merges": ["##a ##t", "c ##at"],
    }
    array = split_text(json.dumps(data), rate=1.0).transform(
        "source", np.array([6]), np.random.default_rng(0)
    )
    assert array["source"].tolist() == [2, 3, 4]


def test_added_tokens_are_not_split():
    data = json.loads(EXAMPLE_PIECES)
    data["added_tokens"].append({**data["added_tokens"][0], "id": 7, "content": "<x>"})
    data["added_tokens"][1]["special"] = False
    preprocessor = split_text(json.dumps(data), rate=1.0)
    encoded = preprocessor.encode("cat <x> at")
    assert encoded.tolist() == [CAT, 7, AT]
    array = preprocessor.transform("source", encoded, np.random.default_rng(0))["source"]
    assert array.tolist() == [C, A, T, 7, A, T]


def test_of_two_merges_to_one_token_the_first_is_undone():
    data = json.loads(EXAMPLE_PIECES)
    data["model"]["vocab"]["ca"] = 7
    data["model"]["merges"] += [["c", "a"], ["ca", "t"]]
    array = split_text(json.dumps(data), rate=1.0).transform(
        "source", np.array([6]), Fixed([0], [1] * 2)
    )
    assert array["source"].tolist() == [C, AT]


@pytest.mark.parametrize("bad_data", ["fail", "skip"])
def test_tokenizers_without_merges_are_rejected_before_training(bad_data, tmp_path):
    (tmp_path / "words.json").write_text(EXAMPLE_TOKENIZER)
    (tmp_path / "a.txt").write_text("the cat\nthe mat\n")
    spec = {
        "zoo": 1,
        "name": "split",
        "extends": "transformer-tiny",
        "preprocessing": {
            "source": {"type": "split-text", "tokenizer": str(tmp_path / "words.json")},
            "target": {"type": "text", "tokenizer": str(tmp_path / "words.json")},
        },
        "train": {
            "data": {
                "type": "parallel-text",
                "source": str(tmp_path / "a.txt"),
                "target": str(tmp_path / "a.txt"),
            },
            "optimiser": {"type": "sgd", "lr": 0.1},
            "batch": {"items": 2},
            "bad_data": bad_data,
            "steps": 1,
        },
    }
    with pytest.raises(ZooError, match=r"^preprocessor 'split-text' needs a byte-pair encoding"):
        zoo.train(spec, output=tmp_path / "run")


def test_models_that_take_one_token_are_rejected():
    preprocessor = SplitText(
        schema=TensorSchema(("B",), "integer", below=9), stored=EXAMPLE_PIECES, rate=0.1
    )
    with pytest.raises(ZooError, match="use 'text' for one token"):
        preprocessor.outputs("target")
