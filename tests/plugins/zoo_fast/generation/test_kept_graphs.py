"""The graphs that are kept with a module; nothing is captured."""

import gc
import weakref

import torch
from torch import nn

from zoo_fast.generation.kept_graphs import MAX_KEPT, module_graphs


def function(module, inputs):
    return {"x": module(inputs["x"])}, None


class Named:
    """An argument that cannot be compared with others of its name, as one with a tensor."""

    def __init__(self):
        self.values = torch.ones(3)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other or bool(self.values == other.values)


def test_graphs_are_found_by_call_and_key():
    graphs, call, other = module_graphs(module := nn.Linear(2, 2)), (function, (1,)), (function, ())
    assert graphs.last(call) is None
    first = graphs.find(call, "a")
    assert module_graphs(module).find(call, "a") is first is graphs.last(call)
    second = graphs.find(call, "b")
    assert second is not first
    assert graphs.last(call) is second
    assert graphs.last(other) is None
    assert graphs.find(call, "a") is first is graphs.last(call)


def test_those_that_were_not_used_are_deleted():
    graphs = module_graphs(module := nn.Linear(2, 2))
    first = weakref.ref(graphs.find((function, (0,)), None))
    for index in range(1, MAX_KEPT + 1):
        graphs.find((function, (index,)), None)
    gc.collect()
    assert first() is None
    assert graphs.last((function, (0,))) is None
    assert graphs.last((function, (1,))) is not None
    kept = weakref.ref(graphs)
    del graphs, module
    gc.collect()
    assert kept() is None


def test_arguments_are_compared_only_if_their_hashes_are_equal():
    module, first, second = nn.Linear(2, 2), Named(), Named()
    graphs = module_graphs(module)
    found = graphs.find((function, (first,)), None)
    assert graphs.last((function, (second,))) is None
    assert graphs.last((function, (first,))) is found
