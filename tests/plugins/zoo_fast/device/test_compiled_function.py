"""Compiled functions: when they are compiled, and that results do not change."""

import logging
import shutil
import unittest
from functools import partial

import pytest
import torch

from zoo_fast.device import compiled_function
from zoo_fast.device.compiled_function import CompiledFunction, use_compiled, why_not_compiled


def mix(x, mask, y):
    """Return an updated value and a product, as a step of a recurrence."""
    updated = (x.sigmoid() * y.softmax(-1)).where(mask[:, None], y)
    return [updated, x @ y.mT]


@pytest.fixture
def compiled(monkeypatch):
    """Return the shapes for which functions are compiled, by a function that does nothing."""
    shapes = []

    def compile_function(function, inputs):
        shapes.append([tuple(tensor.shape) for tensor in inputs])
        assert all(tensor.is_contiguous() for tensor in inputs)
        return lambda *tensors: [output + 1 for output in function(*tensors)]

    monkeypatch.setattr(compiled_function, "compile_function", compile_function)
    return shapes


def inputs(rows=2):
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(rows, 3, generator=generator, requires_grad=True) for _ in range(2))
    return x, torch.arange(rows) != 1, y


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_results_and_gradients_are_those_of_the_function():
    function, (x, mask, y) = partial(CompiledFunction("mix"), mix), inputs()
    state = torch.get_rng_state()
    with use_compiled(compile=True), unittest.TestCase().assertLogs("zoo.fast", "INFO") as logs:
        outputs = function(x, mask, y)
    assert "compiling mix, once for inputs of shape [2, 3]" in logs.output[0]
    assert "compiled mix in" in logs.output[1]
    assert type(outputs[0].grad_fn).__name__ == "CompiledFunctionBackward"
    assert torch.equal(torch.get_rng_state(), state)

    def gradients(outputs, inputs):
        return torch.autograd.grad(sum(output.square().sum() for output in outputs), inputs)

    expected = mix(x, mask, y)
    torch.testing.assert_close(tuple(outputs), tuple(expected), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(
        gradients(outputs, (x, y)), gradients(expected, (x, y)), rtol=1e-5, atol=1e-5
    )
    # The state before the first step needs no gradient; nothing is compiled for it.
    with use_compiled(compile=False):
        first = function(x, mask, y.detach())
    assert type(first[0].grad_fn).__name__ == "CompiledFunctionBackward"
    expected = gradients(mix(x, mask, y.detach()), (x,))
    torch.testing.assert_close(gradients(first, (x,)), expected, rtol=1e-5, atol=1e-5)


def test_functions_are_compiled_and_used_inside_the_block_only(compiled):
    function, arguments = partial(CompiledFunction("mix"), mix), inputs()
    expected = mix(*arguments)[0]
    plain = [function(*arguments)]
    with use_compiled(compile=False):
        plain.append(function(*arguments))
    with use_compiled(compile=True), torch.no_grad():
        plain.append(function(*arguments))
    assert compiled == []
    assert all(torch.equal(outputs[0], expected) for outputs in plain)
    with use_compiled(compile=True):
        used = [function(*arguments), function(*arguments)]
    with use_compiled(compile=False):
        used.append(function(*arguments))
    assert compiled == [[(2, 3), (2,), (2, 3)]]
    assert all(torch.equal(outputs[0], expected + 1) for outputs in used)
    assert torch.equal(function(*arguments)[0], expected)


def test_a_function_is_compiled_once_for_each_shape_and_any_layout(compiled):
    function, (x, mask, y) = partial(CompiledFunction("mix"), mix), inputs()
    with use_compiled(compile=True):
        for each in (y, y.mT.contiguous().mT, y.detach()):
            function(x, mask, each)
        function(*inputs(rows=4))
    assert [shapes[0] for shapes in compiled] == [(2, 3), (4, 3)]


def test_a_function_is_compiled_for_few_shapes(compiled, monkeypatch):
    monkeypatch.setattr(compiled_function, "MAX_COMPILED", 2)
    function = partial(CompiledFunction("mix"), mix)
    with use_compiled(compile=True), unittest.TestCase().assertLogs("zoo.fast", "INFO") as logs:
        for rows in (1, 2, 3, 1, 4):
            function(*inputs(rows))
        assert torch.equal(function(*inputs(3))[0], mix(*inputs(3))[0])
    assert [shapes[0][0] for shapes in compiled] == [1, 2]
    (record,) = [text for text in logs.output if "is not compiled" in text]
    assert (
        "mix is not compiled for inputs of shape [3, 3] and others: 2 shapes are the limit"
        in record
    )


def test_a_function_that_cannot_be_compiled_is_called_as_it_is():
    calls = []

    def reads_a_value(x):
        calls.append(type(x))
        return [x * 2 if x.sum() > 0 else x]

    function = partial(CompiledFunction("a branch"), reads_a_value)
    x = torch.ones(2, requires_grad=True)
    with use_compiled(compile=True), unittest.TestCase().assertLogs("zoo.fast", "INFO") as logs:
        results = [function(x), function(x)]
    assert [record.levelno for record in logs.records] == [logging.INFO] * 2
    assert "a branch is not compiled" in logs.output[1]
    assert all(torch.equal(result, 2 * x) for (result,) in results)
    assert len(calls) == 3  # traced once, called twice


def test_the_reason_why_functions_are_not_compiled(monkeypatch):
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert why_not_compiled(cuda) == "it is not part of a captured training step"
    with use_compiled(compile=False):
        assert why_not_compiled(cpu) is None
        monkeypatch.setenv("ZOO_TRITON", "off")
        assert why_not_compiled(cuda) == "ZOO_TRITON is 'off'"
