"""Functions that are traced as for Inductor, but not compiled, so that tests are fast."""

import pytest
from torch.fx.experimental.proxy_tensor import make_fx

from zoo_fast.device import compiled_function


def trace_functions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Trace functions instead of compiling them; return a list that gets the size of each batch."""
    batches: list[int] = []

    def trace(function, inputs):
        batches.append(len(inputs[0]))
        return make_fx(function)(*[tensor.detach().clone() for tensor in inputs])

    monkeypatch.setattr(compiled_function, "compile_function", trace)
    return batches
