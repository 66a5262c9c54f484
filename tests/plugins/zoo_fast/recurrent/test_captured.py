"""Functions of tensors, captured as CUDA graphs on a GPU."""

from functools import partial

import pytest
import torch
from kits.thread_kit import run_in_threads

from zoo_fast.recurrent.captured import run_captured


def add_steps(tensors, settings):
    total = tensors[0]
    for _ in range(settings[2]):
        total = total + tensors[1]
    return [total, total * 2]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_threads_do_not_share_their_tensors(device):
    inputs = [
        [torch.full((64,), float(index), device=device), torch.ones(64, device=device)]
        for index in range(4)
    ]
    settings = ("gru", "dot", 5)
    for _ in range(4):
        run_captured(add_steps, inputs[0], settings)
    found = run_in_threads([partial(run_captured, add_steps, i, settings) for i in inputs], 100)
    for index, results in enumerate(found):
        for total, double in results:
            assert total.tolist() == [index + 5.0] * 64
            assert double.tolist() == [2 * (index + 5.0)] * 64
