"""Helpers for tests of maps: written files, shapes without tensors, expected problems."""

import textwrap

import pytest
import torch

from zoo.errors import SpecError
from zoo.interfaces.tensors import TensorMeta
from zoo_exchange.mapping import plan_tensors, read_map


def write_map(folder, text):
    """Write a map file; the text starts in line 2."""
    path = folder / "map.yaml"
    path.write_text("zoo: 1\n" + textwrap.dedent(text))
    return path


def metas(**shapes):
    """Return the metas of float32 tensors; ``__`` in a name stands for a dot."""
    return {
        name.replace("__", "."): TensorMeta(tuple(shape), torch.float32)
        for name, shape in shapes.items()
    }


def metas_of(tensors):
    return {name: TensorMeta.of(tensor) for name, tensor in tensors.items()}


def plan_shapes(path, theirs, ours):
    """Plan an import of tensors, given as keywords of `metas`."""
    return plan_tensors(read_map(path), metas(**theirs), metas(**ours))


def run_plan(plan, tensors):
    return dict(plan.run(tensors.__getitem__))


def assert_problems(call, path, expected):
    """Assert that a call raises exactly these problems: each a location ("" for none) and facts."""
    with pytest.raises(SpecError) as caught:
        call()
    problems = str(caught.value).splitlines()
    for problem, (location, *facts) in zip(problems, expected, strict=False):
        place = f"{path}:{location}" if location else str(path)
        assert problem.startswith(f"{place}: "), (problem, location)
        for fact in facts:
            assert fact in problem, (problem, fact)
    assert len(problems) == len(expected), problems
