"""Collation against known tensors, and its errors."""

import numpy as np
import pytest
import torch

import zoo
from zoo.data.collation import collate, collate_columns, prepare_example
from zoo.errors import DataError
from zoo.plugin import TensorSchema

TEXT = TensorSchema(("B", "S"), "integer", below=9, pad=8)
IMAGE = TensorSchema(("B", 3, "H", "W"), "float")


def _batch(schema, *examples):
    return collate(schema, [prepare_example(schema, example) for example in examples])


def test_texts_are_padded_at_their_end():
    schema = {"source": TEXT, "target": TensorSchema(("B",), "integer", below=4)}
    batch = _batch(
        schema,
        {"source": np.array([1, 5, 6, 2, 3]), "target": np.array(3)},
        {"source": np.array([1, 2, 3]), "target": 0},
    )
    assert batch["source"].tolist() == [[1, 5, 6, 2, 3], [1, 2, 3, 8, 8]]
    assert batch["target"].tolist() == [3, 0]
    assert batch["source"].dtype is batch["target"].dtype is torch.int64


def test_images_are_padded_in_both_dimensions():
    small, large = np.ones((3, 1, 2), np.float64), np.ones((3, 2, 1), np.float32)
    batch = _batch({"source": IMAGE}, {"source": small}, {"source": large, "other": small})
    assert list(batch) == ["source"]
    assert batch["source"].dtype is torch.float32
    assert batch["source"][:, 0].tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]


def test_examples_that_must_have_one_size_are_not_padded():
    schema = {"source": IMAGE._replace(same_size=True)}
    images = [np.ones((3, 4, width), np.float32) for width in (4, 4, 6)]
    assert collate(schema, [{"source": image} for image in images[:2]])["source"].shape[0] == 2
    message = r"'source' has the shapes \[3, 4, 4\] and \[3, 4, 6\] in one batch, .* one size"
    with pytest.raises(DataError, match=message):
        collate(schema, [{"source": image} for image in images])
    with pytest.raises(DataError, match=message):
        collate_columns(schema, {"source": images})


@pytest.mark.parametrize("name", ["vit-tiny", "show-attend-tell-soft-tiny", "ram-tiny", "nano-ocr"])
def test_models_of_images_do_not_take_padded_images(name):
    schema = zoo.compose(name).batch_schema()
    channels, height = schema["source"].dims[1:3]
    height = height if isinstance(height, int) else 32
    images = [np.ones((channels, height, width), np.float32) for width in (32, 64)]
    with pytest.raises(DataError, match="one size"):
        collate({"source": schema["source"]}, [{"source": image} for image in images])


def test_a_grid_of_tokens_is_not_padded():
    schema = {"source": zoo.compose("sketch-tiny").batch_schema()["source"]}
    grids = [{"source": np.ones((4, width), np.int64)} for width in (4, 5)]
    with pytest.raises(DataError, match="one size"):
        collate(schema, grids)


def test_graphs_get_a_mask_and_their_own_padding():
    schema = {
        "features": TensorSchema(("B", "N", 2), "float"),
        "edges": TensorSchema(("B", "E", 2), "integer", below="N", minimum=-1, pad=-1),
        "mask": TensorSchema(("B", "N"), "bool", optional=True),
    }
    graphs = [
        {"features": np.ones((nodes, 2)), "edges": np.zeros((edges, 2), int)}
        for nodes, edges in ((1, 2), (3, 1))
    ]
    batch = _batch(schema, *graphs)
    assert batch["mask"].tolist() == [[True, False, False], [True, True, True]]
    assert batch["edges"][1].tolist() == [[0, 0], [-1, -1]]
    given = [{**graph, "mask": np.zeros(len(graph["features"]), bool)} for graph in graphs]
    assert not _batch(schema, *given)["mask"].any()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 2)), r"'source' has shape \[3, 2\], but expected \[3, H, W\]"),
        (np.zeros((1, 2, 2)), r"'source' has shape \[1, 2, 2\], but expected \[3, H, W\]"),
        (np.full((3, 1, 2), np.nan), "'source' contains 6 values that are NaN or infinite"),
        (np.array([["a"]]), "'source' has dtype <U1, but expected float values"),
    ],
)
def test_wrong_arrays_raise_data_error(array, message):
    with pytest.raises(DataError, match=message):
        prepare_example({"source": IMAGE}, {"source": array})


def test_ids_out_of_range_missing_keys_and_unequal_lengths_raise_data_error():
    schema = {"source": TEXT, "target": TensorSchema(("B", "S"))}
    with pytest.raises(DataError, match="'source' contains 9, but expected IDs from 0 to 8"):
        prepare_example(schema, {"source": np.array([9]), "target": np.array([1])})
    with pytest.raises(DataError, match="'source' contains -1, but expected IDs from 0 to 8"):
        prepare_example(schema, {"source": np.array([-1]), "target": np.array([1])})
    with pytest.raises(DataError, match=r"'target' \[B, S\] is missing; found 'source'"):
        prepare_example(schema, {"source": np.array([1])})
    with pytest.raises(DataError, match=r"\[2\], but expected \[S\] with S = 1 as in 'source'"):
        prepare_example(schema, {"source": np.array([1]), "target": np.array([1, 2])})
    edges = {"x": TensorSchema(("B", "N")), "e": TensorSchema(("B", "E"), "integer", below="N")}
    with pytest.raises(DataError, match="'e' contains 2, but expected IDs from 0 to 1"):
        prepare_example(edges, {"x": np.zeros(2), "e": np.array([2])})


@pytest.mark.parametrize(
    "name",
    [
        "bert-tiny",
        "ctc-attention-tiny",
        "dynamic-memory-tiny",
        "elmo-tiny",
        "gat-tiny",
        "gpt2-tiny",
        "ntm-tiny",
        "skip-gram-tiny",
        "wav2vec2-tiny",
    ],
)
def test_collated_examples_of_different_lengths_fit_the_model(name):
    model = zoo.compose(name).eval()
    schema = model.batch_schema()
    generator = torch.Generator().manual_seed(0)
    examples = [model.example(1, length, generator) for length in (3, 5)]
    arrays = [{key: tensor[0].numpy() for key, tensor in e.items()} for e in examples]
    outputs = model(_batch(schema, *arrays))
    assert outputs.logits[outputs.mask].isfinite().all()
