"""Random numbers of examples: known values, the same for any selection of examples."""

import itertools

import numpy as np

from zoo.data.random_numbers import random_generators, random_integers, random_numbers


def _split_mix(state):
    """Return the next number of SplitMix64 with the arithmetic of Python."""
    mask = 2**64 - 1
    z = state & mask
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return ((z ^ (z >> 31)) >> 11) / 2**53


def test_the_numbers_are_those_of_split_mix_64():
    start = int(np.random.SeedSequence(5).generate_state(1, np.uint64)[0])
    indices = [0, 3, 2**40 - 1]
    found = random_numbers(5, indices, 4)
    for row, index in zip(found, indices, strict=True):
        counters = range(index << 24, (index << 24) + 4)
        assert row.tolist() == [_split_mix(start + 0x9E3779B97F4A7C15 * n) for n in counters]


def test_numbers_depend_on_seed_and_index_only():
    whole = random_numbers(1, np.arange(100), 50)
    assert np.array_equal(random_numbers(1, [7, 3], 20), whole[[7, 3], :20])
    other = random_numbers(2, np.arange(100), 50)
    assert len(np.unique([whole, other])) == 10_000
    assert abs(whole.mean() - 0.5) < 0.02
    assert np.unique(random_integers(whole, 3)).tolist() == [0, 1, 2]


def test_each_example_has_its_own_generator():
    seed = np.random.SeedSequence(3)
    draws = {
        index: rng.integers(2**63, size=9).tolist()
        for index, rng in zip(range(4), random_generators(seed, range(4)), strict=True)
    }
    for order in itertools.permutations(range(4), 2):
        for index, rng in zip(order, random_generators(seed, order), strict=True):
            assert rng.integers(2**63, size=9).tolist() == draws[index]
    assert len({number for numbers in draws.values() for number in numbers}) == 36
