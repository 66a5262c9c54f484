"""Functions that are captured as CUDA graphs."""

import subprocess
import sys
import threading

import pytest
import torch
from memory_kit import limited_memory

from zoo_fast.device.cuda_graph import GraphedFunction, MissingMemory


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


@pytest.mark.gpu
def test_graphs_are_deleted_if_another_shape_needs_their_memory():
    size = 2**28

    def total(inputs):
        try:
            large = torch.rand(size, device="cuda") + inputs["x"].sum()
        except torch.OutOfMemoryError as error:
            raise MissingMemory(str(error)) from None
        return large.mean()

    graphed = GraphedFunction(total)
    x = torch.ones(4, device="cuda")
    for _ in range(3):
        graphed({"x": x})
    assert graphed.graphs == 1
    state = torch.cuda.get_rng_state()
    with limited_memory(size):  # bytes, a quarter of what one tensor needs
        found = graphed({"x": x[:2]})
    assert (graphed.graphs, graphed.reason) == (
        0,
        "there is not enough memory for graphs of several shapes",
    )
    torch.cuda.set_rng_state(state)
    assert torch.equal(found, total({"x": x[:2]}))


@pytest.mark.gpu
def test_missing_memory_without_graphs_is_an_error():
    def fail(inputs):
        raise MissingMemory("a test")

    with pytest.raises(torch.OutOfMemoryError, match="a test"):
        GraphedFunction(fail)({"x": torch.ones(4, device="cuda")})


@pytest.mark.gpu
def test_a_graph_has_its_own_workspaces():
    script = """
import torch
from zoo_fast.device.cuda_graph import GraphedFunction

graphed = []
for dtype in (torch.float32, torch.bfloat16):
    x, weight = torch.randn(16, 2**15, device="cuda", dtype=dtype), torch.randn(2**15, 16)
    weight = weight.to(x)
    function = GraphedFunction(lambda inputs, weight=weight: inputs["x"] @ weight)
    for _ in range(3):
        expected = function({"x": x}).clone()
    assert function.graphs == 1
    graphed.append((function, x, expected))
torch._C._cuda_clearCublasWorkspaces()  # as a compiled model does
torch.cuda.empty_cache()
for function, x, expected in graphed:
    assert torch.equal(function({"x": x}), expected)
torch.cuda.synchronize()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
