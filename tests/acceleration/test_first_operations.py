"""Operations that are called before a model needs them."""

import subprocess
import sys
import threading

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import zoo
from zoo.acceleration.first_operations import call_operations


class Names(TorchDispatchMode):
    """Notes the names of the operations that are called."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function.__name__.split(".")[0])
        return function(*args, **kwargs or {})


def test_the_operations_of_a_search_are_called():
    with Names() as found:
        call_operations(torch.device("cpu"))
    assert {"remainder", "isneginf", "cat", "ge", "_foreach_copy_"} <= found.names


def test_nothing_is_called_for_the_cpu(monkeypatch):
    started = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread))
    zoo.compose("transformer-tiny")
    assert started == []


@pytest.mark.gpu
def test_they_are_called_once_for_a_gpu():
    script = """
import zoo
from zoo.acceleration import finish_preparation, first_operations
calls = []
call = first_operations.call_operations
first_operations.call_operations = lambda device: calls.append((call(device), device))
for device in ("cuda", "cuda:0", "cuda"):
    zoo.compose("transformer-tiny", device=device)
    finish_preparation()
assert [str(device) for _, device in calls] == ["cuda:0"], calls
"""
    subprocess.run([sys.executable, "-c", script], check=True)
