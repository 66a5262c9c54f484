"""The order of examples: complete, limited, reproducible."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from zoo.data.order import block_layout, epoch_order, random_generator, split_batch
from zoo.spec.training import Batching

LENGTHS = st.lists(st.integers(1, 30), min_size=0, max_size=200).map(np.array)
BATCHINGS = st.one_of(
    st.builds(Batching, items=st.integers(1, 20), buckets=st.integers(0, 4)),
    st.builds(
        Batching, tokens=st.integers(30, 200), buckets=st.integers(0, 4), shuffle=st.booleans()
    ),
)


def _order(lengths, batching, **options):
    options = {"seed": 0, "epoch": 0} | options
    return epoch_order(len(lengths), lengths, batching, **options)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LENGTHS, BATCHINGS, st.integers(0, 3), st.booleans())
def test_each_row_is_in_one_batch_and_no_batch_exceeds_its_limit(
    lengths, batching, epoch, evaluation
):
    order = _order(lengths.astype(np.int64), batching, epoch=epoch, evaluation=evaluation)
    batches = [order.batch(index) for index in range(len(order))]
    assert sorted(np.concatenate([[], *batches]).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) > 0
        if batching.items:
            assert len(batch) <= batching.items
        else:
            assert len(batch) * lengths[batch].max() <= batching.tokens
    if evaluation:
        assert order.rows.tolist() == list(range(len(lengths)))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LENGTHS, st.integers(1, 7), st.booleans())
def test_shares_are_a_partition_of_balanced_sizes(lengths, shares, is_sorted):
    rows = np.random.default_rng(0).permutation(len(lengths))
    parts = split_batch(rows, lengths if is_sorted else None, shares)
    assert len(parts) == shares
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    if is_sorted and shares > 1:
        flat = lengths[np.concatenate(parts)].tolist() if len(lengths) else []
        assert flat == sorted(flat)


def test_the_order_depends_on_seed_and_epoch_only():
    lengths = np.random.default_rng(0).integers(1, 20, 500)
    batching = Batching(tokens=100)
    orders = {
        (seed, epoch): _order(lengths, batching, seed=seed, epoch=epoch).rows.tolist()
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len({tuple(rows) for rows in orders.values()}) == 4
    assert orders[1, 1] == _order(lengths, batching, seed=1, epoch=1).rows.tolist()


def test_buckets_reduce_padding_and_keep_batches_random():
    lengths = np.random.default_rng(0).integers(1, 40, 4000)

    def padded(buckets):
        order = _order(lengths, Batching(items=20, buckets=buckets))
        batches = [order.batch(index) for index in range(len(order))]
        return [lengths[batch].max() for batch in batches]

    assert sum(padded(0)) * 20 > 1.8 * lengths.sum()
    assert sum(padded(10)) * 20 < 1.2 * lengths.sum()
    assert padded(10) != sorted(padded(10))


def test_batches_of_known_lengths():
    batching = Batching(tokens=12, shuffle=False, buckets=0)
    order = _order(np.array([3, 3, 4, 2, 6, 6, 7]), batching)
    assert order.bounds.tolist() == [0, 3, 5, 6, 7]


@pytest.mark.parametrize("evaluation", [False, True])
def test_blocks_predict_each_token_at_most_once(evaluation):
    total, block = 103, 10
    for epoch in range(20):
        start, count = block_layout(total, block, seed=3, epoch=epoch, evaluation=evaluation)
        ends = [min(start + (i + 1) * block + 1, total) for i in range(count)]
        assert 0 <= start < block
        assert ends[-1] == total if evaluation else total - block < ends[-1] <= total
    offsets = {block_layout(total, block, seed=3, epoch=e, evaluation=False)[0] for e in range(9)}
    assert len(offsets) > 3


def test_a_short_stream_is_one_block():
    for total, count in ((0, 0), (1, 0), (2, 1), (11, 1), (12, 2)):
        assert block_layout(total, 10, seed=0, epoch=0, evaluation=False) == (0, count)


def test_random_generators_of_different_arguments_are_independent():
    arguments = [
        (use, seed, epoch, index)
        for use in ("order", "blocks", "transform")
        for seed in (0, 1, 2**32, 2**32 + 1, 2**63 - 1)
        for epoch in (0, 1, 2)
        for index in (0, 1, 2, 2**32, 2**32 + 1)
    ]
    draws = {random_generator(*each).integers(2**63) for each in arguments}
    assert len(draws) == len(arguments)


def test_an_order_needs_few_bytes_for_each_row():
    count = 200_000
    lengths = np.random.default_rng(0).integers(5, 60, count).astype(np.int32)
    for batching in (Batching(tokens=4096), Batching(items=64)):
        tracemalloc.start()
        order = _order(lengths, batching)
        kept, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(order) > 100
        assert kept < 6 * count
        assert peak < 14 * count
