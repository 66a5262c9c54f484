"""Inputs that are generated from in several batches."""

import pytest

import zoo
from zoo.errors import InputError
from zoo.generation.pipeline import generate_batches


def test_batches_of_inputs_give_their_outputs_in_order():
    model = zoo.compose("gpt2-tiny")
    rows = [[5], [6, 7], [8], [9], [5, 6]]
    expected = [found[0].tokens for found in zoo.generate(model, rows, max_length=5)]
    batches = list(generate_batches(model, rows, 2, max_length=5))
    assert [len(each) for each in batches] == [2, 2, 1]
    assert [found[0].tokens for each in batches for found in each] == expected
    options = {"sampler": "temperature", "seed": 1, "max_length": 9}
    sampled = list(generate_batches(model, [[5]] * 3, 1, **options))
    assert sampled[0] != sampled[1]  # the random numbers continue
    with pytest.raises(InputError) as raised:
        list(generate_batches(model, [*rows[:3], [10**6]], 2, max_length=5))
    assert raised.value.number == 4
