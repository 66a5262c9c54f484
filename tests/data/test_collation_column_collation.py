"""Collation of columns against collation of examples."""

import numpy as np
import pytest
import torch

from zoo.data.collation import collate, collate_columns, prepare_example
from zoo.errors import DataError
from zoo.plugin import TensorSchema

TEXT = TensorSchema(("B", "S"), "integer", below=300, pad=-100)
IDS = [np.array([5, 6], np.uint8), np.array([7], np.uint8)]
SCHEMAS = [
    ({"x": TEXT, "mask": TensorSchema(("B", "S"), "bool", optional=True)}, {"x": IDS}),
    ({"x": TensorSchema(("B", 2, "H"), "float")}, {"x": np.arange(12, dtype=int).reshape(3, 2, 2)}),
    (
        {"x": TensorSchema(("B", "S", 2), "float"), "y": TensorSchema(("B", "S"), "float")},
        {"x": [np.ones((1, 2)), np.ones((3, 2))], "y": [np.zeros(1), np.zeros(3)], "z": IDS},
    ),
    (
        {"x": TensorSchema(None, "number"), "mask": TensorSchema(("B", 2), "bool", optional=True)},
        {"x": np.array([3, 4], np.int32), "mask": np.ones((2, 2), bool)},
    ),
]


@pytest.mark.parametrize(("schema", "columns"), SCHEMAS)
def test_columns_are_collated_as_their_examples(schema, columns):
    count = len(columns["x"])
    examples = [{key: column[row] for key, column in columns.items()} for row in range(count)]
    expected = collate(schema, [prepare_example(schema, example) for example in examples])
    found = collate_columns(schema, columns)
    assert found.keys() == expected.keys()
    for key, tensor in expected.items():
        torch.testing.assert_close(found[key], tensor, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("field", "column"),
    [
        (TEXT, [np.array([300])]),
        (TEXT, [np.array([5]), np.array([[5]])]),
        (TEXT, [np.array([0.5])]),
        (TEXT._replace(dims=("B", 4)), IDS),
        (TensorSchema(("B", 2), "float"), np.zeros((3, 3))),
        (TensorSchema(("B", 2), "float"), np.full((3, 2), np.nan)),
        (TensorSchema(("B", "S"), "float"), [np.zeros(1), np.array([1, np.inf])]),
    ],
)
def test_a_column_that_does_not_fit_raises_data_error(field, column):
    with pytest.raises(DataError, match="'x'"):
        collate_columns({"x": field}, {"x": column})


def test_missing_columns_and_other_sizes_raise_data_error():
    schema = {"x": TensorSchema(("B", "S"), "float"), "y": TensorSchema(("B", "S"), "float")}
    with pytest.raises(DataError, match=r"'y' .* is missing"):
        collate_columns(schema, {"x": np.zeros((2, 3))})
    with pytest.raises(DataError, match="'y' does not have the size of dimension S"):
        collate_columns(schema, {"x": np.zeros((2, 3)), "y": np.zeros((2, 4))})
