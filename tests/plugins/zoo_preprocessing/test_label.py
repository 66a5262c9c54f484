import numpy as np
import pytest

from zoo import DataError, ZooError
from zoo.plugin import TensorSchema
from zoo_preprocessing.label import Label
from zoo_preprocessing.labels import Labels

CLASS = TensorSchema(("B",), "integer", below=3)
TAGS = TensorSchema(("B", "S"), "integer", below=3)
ITEM_SET = TensorSchema(("B", 4))
TAG_SETS = TensorSchema(("B", "S", 3))


def test_known_values():
    label = Label(classes=["dog", "cat", 7], schema=CLASS)
    assert [int(label.encode(each)) for each in ("dog", "cat", 7, np.int32(7))] == [0, 1, 2, 2]
    assert [label.decode([i]) for i in (1, 2, 5)] == ["cat", "7", "5"]


def test_classes_are_the_sorted_labels_of_the_training_data():
    label = Label(schema=CLASS)
    assert label.fit(["dog", "ant", "dog"]) == {"classes": ["ant", "dog"]}
    assert label.fit([10, "a", 9]) == {"classes": [9, 10, "a"]}
    assert Label(classes=["b"], schema=CLASS).fit(["a"]) == {}


def test_integers_that_are_valid_ids_keep_their_values():
    assert Label(schema=CLASS).fit([2, 0]) == {"classes": [0, 1, 2]}
    assert Label(schema=CLASS).fit([1, 2, 3]) == {"classes": [1, 2, 3]}


def test_more_labels_than_classes_raise_with_both_numbers():
    with pytest.raises(ZooError, match="training data have 4 labels, but the model has 3 classes"):
        Label(schema=CLASS).fit("abcd")
    with pytest.raises(ZooError, match="classes has 4 labels, but the model has 3 classes"):
        Label(classes=list("abcd"), schema=CLASS)
    with pytest.raises(ZooError, match="its labels: 'a', 'a,', 'b', 'b,'"):
        Labels(schema=TAGS).fit([["a,", "b"], ["b,", "a"]])
    with pytest.raises(ZooError, match="contains 'a' more than once"):
        Label(classes=["a", "b", "a"], schema=CLASS)


def test_an_unknown_label_raises_with_the_nearest():
    label = Label(classes=["spaniel", "poodle"], schema=CLASS)
    with pytest.raises(DataError, match=r"unknown label 'spanel'; did you mean 'spaniel'\?"):
        label.encode("spanel")
    for wrong in (True, 1.5, ["spaniel"]):
        with pytest.raises(DataError, match="expected a label"):
            label.encode(wrong)
    with pytest.raises(ZooError, match="names of the classes are not known"):
        Label(schema=CLASS).encode("a")


def test_one_label_for_each_position():
    labels = Labels(classes=["a", "b"], schema=TAGS)
    assert labels.encode(["b", "a", "b"]).tolist() == [1, 0, 1]
    assert labels.decode([1, 0]) == "b a"
    assert Labels(schema=TAGS).fit([["b"], ["a", "b"]]) == {"classes": ["a", "b"]}
    for wrong in ([], "ab", 3):
        with pytest.raises(DataError, match="expected a list of labels"):
            labels.encode(wrong)


def test_the_labels_of_an_item_are_a_multi_hot_vector():
    labels = Labels(classes=["a", "b", "c"], schema=ITEM_SET)
    assert labels.encode(["c", "a"]).tolist() == [1, 0, 1, 0]
    assert labels.encode(["c"]).dtype == np.float32
    assert labels.encode([]).tolist() == [0, 0, 0, 0]
    assert Labels(schema=ITEM_SET).fit([["b"], [], ["a"]]) == {"classes": ["a", "b"]}
    assert labels.outputs("target")["target"].dtype == "float"


def test_the_labels_of_each_position_are_multi_hot_vectors():
    labels = Labels(classes=["a", "b"], schema=TAG_SETS)
    assert labels.encode([["a", "b"], ["b"]]).tolist() == [[1, 1, 0], [0, 1, 0]]
    assert Labels(schema=TAG_SETS).fit([[["b"], ["a"]]]) == {"classes": ["a", "b"]}


def test_other_shapes_are_rejected():
    with pytest.raises(ZooError, match=r"makes one class ID.*integer \[B, S\]"):
        Label(schema=TAGS).outputs("target")
    with pytest.raises(ZooError, match=r"makes class IDs \[B, S\].*integer \[B\]"):
        Labels(schema=CLASS).outputs("target")


def test_labels_are_not_the_tokens_of_a_text_with_start_and_end_tokens():
    schema = TAGS._replace(prefix=(1,), suffix=(2,))  # the classes 0 to 2 are pad, bos and eos
    with pytest.raises(ZooError, match="takes a text with start and end tokens; use the prep"):
        Labels(schema=schema).outputs("target")


def test_an_empty_label_is_a_position_without_one_if_the_model_takes_it():
    labels = Labels(classes=["a", "b"], schema=TAGS._replace(minimum=None))
    assert labels.encode(["b", "", "a"]).tolist() == [1, -1, 0]
    assert Labels(schema=TAGS).fit([["b", "", "a"]]) == {"classes": ["a", "b"]}
    with pytest.raises(DataError, match="unknown label ''"):
        Labels(classes=["a"], schema=TAGS).encode([""])
