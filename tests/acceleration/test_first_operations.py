"""Operations that are called before a model needs them."""

import subprocess
import sys
import threading
import unittest

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import zoo
from zoo.acceleration import finish_preparation, first_operations, preparation
from zoo.acceleration.first_operations import call_operations, hash_triton, prepare_operations


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


@pytest.mark.parametrize(
    ("switch", "expected"), [("on", ["operations", "compiled kernels"]), ("off", ["operations"])]
)
def test_triton_is_prepared_only_for_the_accelerations(monkeypatch, switch, expected):
    monkeypatch.setenv("ZOO_FAST", switch)
    monkeypatch.setattr(preparation, "_PREPARED", set())
    started = []
    monkeypatch.setattr(first_operations, "start_thread", lambda _, what: started.append(what))
    for device in ("cuda:0", "cuda:0", "cpu"):
        prepare_operations(torch.device(device))
    assert started == expected


def test_an_error_is_logged(monkeypatch):
    monkeypatch.setenv("ZOO_FAST", "off")
    monkeypatch.setattr(preparation, "_PREPARED", set())
    with unittest.TestCase().assertLogs("zoo.acceleration.first_operations", "INFO") as records:
        prepare_operations(torch.device("cuda:99"))
        finish_preparation()
    assert "operations are not prepared: " in records.output[0]


def test_triton_does_not_have_to_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton.runtime.cache", None)
    with unittest.TestCase().assertNoLogs("zoo.acceleration.first_operations", "INFO"):
        first_operations._run(hash_triton, "compiled kernels")


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


@pytest.mark.gpu
@pytest.mark.parametrize(("spec", "length"), [("llama-tiny", 90), ("gpt2-tiny", 20)])
def test_the_first_call_imports_no_kernels(spec, length):
    script = f"""
import sys
import zoo
from zoo.acceleration import finish_preparation
model = zoo.compose({spec!r}, device="cuda", dtype="bfloat16").eval()
finish_preparation()
from triton.runtime.cache import triton_key
assert triton_key.cache_info().currsize == 1
before = set(sys.modules)
zoo.generate(model, [[5] * {length}], max_length=8)
new = set(sys.modules) - before
assert not [name for name in new if ".kernels." in name or name.startswith("triton.")], new
"""
    subprocess.run([sys.executable, "-c", script], check=True)
