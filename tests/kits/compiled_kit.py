"""Functions that are traced as for Inductor, but not compiled, so that tests are fast."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from zoo.plugin import Acceleration
from zoo.testing import check
from zoo.testing.configuration import configurations
from zoo.testing.laws.acceleration import same_results
from zoo_fast.device import compiled_function
from zoo_fast.device.compiled_function import use_compiled


def trace_functions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Trace functions instead of compiling them; return a list that gets the size of each batch."""
    batches: list[int] = []

    def trace(function, inputs):
        batches.append(len(inputs[0]))
        return make_fx(function)(*[tensor.detach().clone() for tensor in inputs])

    monkeypatch.setattr(compiled_function, "compile_function", trace)
    return batches


def check_traced(cls: type[Acceleration], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the laws of an acceleration that compiles functions, with functions that are traced."""
    batches = trace_functions(monkeypatch)
    with use_compiled(compile=True):
        check(cls)
    assert set(batches) == {1, 3}


def check_compiled(cls: type[Acceleration]) -> None:
    """Check that functions that Inductor compiles have the same results, on a GPU."""
    (config,) = configurations(cls)
    with use_compiled(compile=True), torch.device("cuda"):
        same_results(config)  # other laws would compile anew
