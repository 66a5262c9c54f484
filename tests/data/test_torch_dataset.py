"""Encoded examples and samplers in a DataLoader of PyTorch: the same batches as of `epoch`."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from data_kit import LANGUAGE_MODEL, array_batches, parallel_columns, text_batches
from torch.utils.data import DataLoader

from zoo.errors import DataError
from zoo.spec.training import Batching

COLUMNS = parallel_columns(60)
TEXTS = {"target": COLUMNS["target"]}
OPENED = {
    "texts by tokens": lambda: text_batches(COLUMNS, Batching(tokens=60)),
    "texts by items": lambda: text_batches(COLUMNS, Batching(items=7)),
    "evaluation": lambda: text_batches(COLUMNS, Batching(items=7), evaluation=True),
    "dropped": lambda: text_batches(COLUMNS, Batching(items=7, drop_long=9)),
    "masked": lambda: text_batches(TEXTS, Batching(items=7), spec=LANGUAGE_MODEL),
    "blocks": lambda: text_batches(TEXTS, Batching(items=3, block=16), spec=LANGUAGE_MODEL),
    "last block": lambda: text_batches(
        TEXTS, Batching(items=3, block=16), spec=LANGUAGE_MODEL, evaluation=True
    ),
    "random transforms": lambda: array_batches(12, Batching(items=5)),
}


def _loader(batches, sampler=None, **options):
    data = batches.dataset
    sampler = sampler or batches.sampler()
    return DataLoader(data, batch_sampler=sampler, collate_fn=data.collate, **options)


def _assert_equal(found, expected):
    assert len(found) == len(expected)
    for batch, other in zip(found, expected, strict=True):
        assert batch.keys() == other.keys()
        for key, tensor in batch.items():
            assert tensor.dtype == other[key].dtype
            assert torch.equal(tensor, other[key])


@pytest.mark.parametrize("opened", OPENED.values(), ids=OPENED)
def test_a_data_loader_yields_the_batches_of_each_epoch(opened):
    batches = opened()
    loader = _loader(batches)
    for epoch in (0, 1, 5):
        loader.batch_sampler.set_epoch(epoch)
        expected = [update.batches[0] for update in batches.epoch(epoch)]
        assert len(loader) == len(expected)
        _assert_equal(list(loader), expected)


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_persistent_workers_follow_the_epoch(context):
    batches = OPENED["random transforms"]()
    loader = _loader(
        batches, num_workers=1, persistent_workers=True, multiprocessing_context=context
    )
    for epoch in (0, 1):
        loader.batch_sampler.set_epoch(epoch)
        _assert_equal(list(loader), [update.batches[0] for update in batches.epoch(epoch)])
    loader._iterator._shutdown_workers()


def test_processes_get_shares_of_the_same_batches():
    batches = text_batches(COLUMNS, Batching(items=7))
    for rank in range(3):
        loader = _loader(batches, batches.sampler(rank=rank, world=3))
        expected = [update.batches[0] for update in batches.epoch(0, rank=rank, world=3)]
        _assert_equal(list(loader), expected)
    shares = [list(batches.sampler(rank=rank, world=9)) for rank in range(9)]
    assert {len(share) for share in shares} == {batches.updates(0)}
    assert all(rows for share in shares for rows in share)


def test_a_dataset_has_tensors_without_padding_and_survives_pickling():
    data = text_batches(COLUMNS, Batching(items=7)).dataset
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = pickle.loads(pickle.dumps(data))
    assert len(data) == len(copy) == 60
    words = [int(word[1:]) for word in COLUMNS["target"][3].split()]
    assert data[3]["target"].tolist() == copy[3]["target"].tolist() == [1, *words, 2]
    with pytest.raises(IndexError, match="example 60 does not exist; there are 60"):
        data[60]


def test_bad_examples_raise_or_are_left_out():
    bad = {3: np.full((3, 3, 3), np.nan)}
    with pytest.raises(DataError, match="list:4: 'source' contains 27 values"):
        array_batches(12, Batching(items=4), bad=bad).dataset[3]
    data = array_batches(12, Batching(items=4), bad=bad, bad_data="skip").dataset
    assert data[3] is None
    _assert_equal([data.collate([data[2], data[3]])], [data.collate([data[2]])])
    with pytest.raises(DataError, match="no example of this batch can be used"):
        data.collate([data[3]])
