"""Memory steps that are compiled in captured training steps."""

import pytest
import torch
from compiled_kit import check_compiled, check_traced, trace_functions

import zoo
from zoo_fast.device.compiled_function import use_compiled
from zoo_fast.memory.compiled_memory import CompiledDNC, CompiledNTM


@pytest.mark.parametrize("cls", [CompiledDNC, CompiledNTM])
def test_laws_hold_for_traced_steps(cls, monkeypatch):
    check_traced(cls, monkeypatch)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
@pytest.mark.parametrize("cls", [CompiledDNC, CompiledNTM])
def test_compiled_steps_have_the_same_results(cls):
    check_compiled(cls)


@pytest.mark.parametrize("spec", ["dnc-tiny", "ntm-tiny"])
def test_one_function_serves_all_time_steps(spec, monkeypatch):
    batches = trace_functions(monkeypatch)
    torch.manual_seed(0)
    model = zoo.accelerate(zoo.compose(spec))
    batch = model.example(3, 5, torch.Generator().manual_seed(0))

    def run():
        model.zero_grad()
        loss = zoo.objective(spec)(model(batch))
        loss.backward()
        return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]

    expected = run()
    assert batches == []
    with use_compiled(compile=True):
        torch.testing.assert_close(run(), expected)
        with zoo.recording(model) as weights:
            model(batch)
    assert batches == [3]
    assert len(weights["encoder.writes"]) == 5
