"""Modules of one process."""

import pytest
import torch
from torch import nn

from zoo.training.processes import Processes


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_module_of_one_process_is_not_changed(precision, tmp_path):
    processes = Processes(tmp_path, device="cpu", precision=precision)
    module = nn.Linear(2, 2)
    try:
        assert processes.wrap(module) is module
        assert "forward" not in vars(module)
    finally:
        processes.close()


def test_accelerate_compiles_the_module_if_it_is_configured_to(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELERATE_DYNAMO_BACKEND", "eager")
    processes = Processes(tmp_path, device="cpu")
    try:
        assert isinstance(processes.wrap(nn.Linear(2, 2)), torch._dynamo.OptimizedModule)
    finally:
        processes.close()
