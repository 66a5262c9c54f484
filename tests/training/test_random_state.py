"""States of random generators."""

import random

import numpy as np
import torch

from zoo.training.random_state import get_random_state, seed_all, set_random_state


def _sample():
    return [random.random(), random.gauss(0, 1), np.random.randn(), torch.rand(1).item()]


def test_the_generators_continue_from_a_state():
    before = get_random_state()
    try:
        seed_all(5)
        _sample()  # the generators of normal values keep the second of each pair
        state = get_random_state()
        expected = _sample()
        seed_all(6)
        assert _sample() != expected
        set_random_state(state)
        assert _sample() == expected
    finally:
        set_random_state(before)


def test_states_are_on_the_cpu_with_another_default_device():
    with torch.device("meta"):
        state = get_random_state()
    assert {tensor.device.type for tensor in state.values()} == {"cpu"}
    set_random_state(state)
