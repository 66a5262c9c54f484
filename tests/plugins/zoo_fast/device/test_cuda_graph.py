"""Functions that are captured as CUDA graphs."""

import threading
import warnings

import pytest
import torch

from zoo_fast.device import cuda_graph
from zoo_fast.device.cuda_graph import GraphedFunction


def warn_of_sync():
    warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the test with a GPU is that below")
def test_warnings_of_this_thread_are_found_and_others_are_raised_again(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    thread = threading.Thread(target=warn_of_sync)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        with cuda_graph._find_synchronisation() as found:
            thread.start()
            thread.join()
            assert not found
            warn_of_sync()
            warnings.warn("another one", UserWarning, stacklevel=1)
            warnings.warn("a prototype feature", UserWarning, stacklevel=1)
    assert len(found) == 1
    assert found[0].endswith("waits for the device")
    assert [str(warning.message) for warning in raised] == ["another one"]


@pytest.mark.gpu
def test_a_function_that_waits_is_not_captured_unless_another_thread_waits():
    x = torch.ones(4, device="cuda")

    def wait():
        x.sum().item()

    def wait_in_a_thread():
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()

    assert capture(x, wait).reason.endswith("waits for the device")
    graphed = capture(x, wait_in_a_thread)
    assert graphed.reason is None
    assert graphed.graphs == 1


def capture(x, during):
    """Return a captured function, in whose last warm-up call another one is called."""

    def double(inputs):
        if graphed.is_last_warmup:
            during()
        return 2 * inputs["x"]

    graphed = GraphedFunction(double)
    for _ in range(4):
        assert torch.equal(graphed({"x": x}), 2 * x)
    return graphed


@pytest.mark.gpu
def test_only_inputs_of_a_captured_shape_are_replayed():
    x = torch.ones(4, device="cuda")
    graphed = GraphedFunction(lambda inputs: 2 * inputs["x"])
    for _ in range(2):
        graphed({"x": x})
        assert graphed.replay({"x": x}) is None
    graphed({"x": x})
    assert torch.equal(graphed.replay({"x": 3 * x}), 6 * x)
    assert graphed.replay({"x": x[:2]}) is None
    graphed.reason = "a test"
    assert graphed.replay({"x": x}) is None
