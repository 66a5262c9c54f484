"""Windows of DRAW that are compiled in captured training steps."""

import pytest
import torch
from compiled_kit import check_compiled, check_traced, trace_functions

import zoo
from zoo_fast.device.compiled_function import use_compiled
from zoo_fast.draw.compiled_windows import CompiledReader, CompiledWriter


@pytest.mark.parametrize("cls", [CompiledReader, CompiledWriter])
def test_laws_hold_for_traced_windows(cls, monkeypatch):
    check_traced(cls, monkeypatch)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
@pytest.mark.parametrize("cls", [CompiledReader, CompiledWriter])
def test_compiled_windows_have_the_same_results(cls):
    check_compiled(cls)


@pytest.mark.parametrize(("overrides", "traced"), [((), [3, 3]), (("model.read_size=null",), [3])])
def test_one_function_serves_all_steps(overrides, traced, monkeypatch):
    batches = trace_functions(monkeypatch)
    model = zoo.accelerate(zoo.compose("draw-tiny", overrides=overrides, seed=0))
    batch = model.example(3, 1, torch.Generator().manual_seed(0))

    def run():
        model.zero_grad()
        torch.manual_seed(0)
        loss = zoo.objective("draw-tiny")(model(batch))
        loss.backward()
        return [loss.detach(), *(p.grad for p in model.parameters())]

    expected = run()
    with use_compiled(compile=True):
        torch.testing.assert_close(run(), expected)
    assert batches == traced
