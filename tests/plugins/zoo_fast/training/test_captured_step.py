"""Captured steps, with a function in place of the CUDA graph."""

import copy
from types import SimpleNamespace

import pytest
import torch
from compiled_kit import trace_functions

import zoo
from zoo.training.callback import Callback
from zoo.training.local_step import LocalStep, LossModule
from zoo.training.processes import Processes
from zoo.training.step import GlobalStep
from zoo.training.trainer import Trainer
from zoo_fast.device.cuda_graph import MissingMemory
from zoo_fast.training import captured_step


class NotGraphed:
    """Calls the function; ``reason`` is set by the test. The second call is the last warm-up."""

    def __init__(self, function, *, max_graphs, device):
        self.function, self.reason = function, None
        self.is_last_warmup, self.graphs = False, 0
        self.shapes = []

    def __call__(self, inputs):
        self.shapes.append(inputs["source"].shape)
        self.is_last_warmup = self.shapes.count(inputs["source"].shape) == 2
        return self.function(inputs)


@pytest.fixture
def made(monkeypatch):
    graphed = []

    def make(function, **options):
        graphed.append(NotGraphed(function, **options))
        return graphed[-1]

    monkeypatch.setattr(captured_step, "GraphedFunction", make)
    monkeypatch.setattr(captured_step, "why_not_captured", lambda *_: None)
    monkeypatch.setattr(captured_step, "make_capturable", lambda optimiser: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: None)
    return graphed


def make_step(optimiser=torch.optim.Adam, spec="transformer-tiny"):
    torch.manual_seed(0)
    model = zoo.compose(spec).eval()
    module = LossModule(model, zoo.objective(spec))
    cpu = torch.device("cpu")
    return LocalStep(module, model, optimiser(model.parameters(), lr=0.01), device=cpu, clip=1.0)


def test_steps_have_the_results_of_plain_ones(made):
    plain, step = make_step(torch.optim.SGD), zoo.accelerate(make_step(torch.optim.SGD))
    batch = plain.model.example(3, 5, torch.Generator().manual_seed(0))
    for index in range(3):
        for each in (plain, step):
            each.set_lr((index + 1) / 3)
        torch.testing.assert_close(step(batch), plain(batch))
    (graphed,) = made
    assert graphed.shapes == [(3, 8)] * 3
    weights = zip(step.parameters, plain.parameters, strict=True)
    for captured, expected in weights:
        torch.testing.assert_close(captured, expected, rtol=1e-3, atol=1e-5)


def test_functions_are_compiled_in_the_last_warm_up_step(made, monkeypatch):
    compiled, batches = [], trace_functions(monkeypatch)
    step = zoo.accelerate(make_step(spec="dnc-tiny"))
    zoo.accelerate(step.module)
    for items in (2, 3, 3, 3):
        step(step.model.example(items, 4, torch.Generator().manual_seed(0)))
        compiled.append(list(batches))
    assert compiled == [[], [], [3], [3]]


def test_after_a_failure_steps_are_plain(made):
    step = zoo.accelerate(make_step())
    batch = step.model.example(3, 5, torch.Generator().manual_seed(0))
    first, _ = step(batch)
    made[0].reason = "a line waits for the device"
    second, _ = step(batch)
    assert second < first
    assert len(made[0].shapes) == 1


class FailingLoss(LossModule):
    """Counts its calls in a buffer; some fail, as if memory was missing."""

    def __init__(self, model, objective):
        super().__init__(model, objective)
        self.register_buffer("calls", torch.zeros(()))
        self.fails = False

    def forward(self, batch):
        self.calls += 1
        if self.fails:
            raise torch.OutOfMemoryError("a test")
        return super().forward(batch)


def test_a_step_without_memory_leaves_the_buffers_for_one_without_graphs(made):
    step = make_step()
    step.module = FailingLoss(step.model, step.module.objective)
    zoo.accelerate(step)
    batch = step.model.example(3, 5, torch.Generator().manual_seed(0))
    step(batch)
    made[0].graphs, step.module.fails = 1, True
    with pytest.raises(MissingMemory, match="a test"):
        step(batch)
    assert step.module.calls == 1
    assert all(parameter.grad is None for parameter in step.parameters)


def test_copies_are_plain(made):
    step = zoo.accelerate(make_step())
    step(step.model.example(3, 5, torch.Generator().manual_seed(0)))
    copied = copy.deepcopy(step)
    assert type(copied) is LocalStep
    shared = {id(p) for p in copied.module.parameters()}
    assert shared == {id(p) for p in copied.parameters}


class Messages(Callback):
    def __init__(self):
        self.texts = []

    def on_message(self, text):
        self.texts.append(text)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_trainer_reports_once_why_steps_are_not_captured(device):
    step, messages = zoo.accelerate(make_step(torch.optim.SGD)), Messages()
    step.device = torch.device(device)
    trainer = SimpleNamespace(
        setup=SimpleNamespace(step=SimpleNamespace(local=step, not_captured=None)),
        callbacks=[messages],
        _reported=set(),
    )
    for _ in range(2):
        Trainer._report_path(trainer)
    reason = "optimiser SGD has no option 'capturable' or 'fused'"
    expected = f"acceleration 'captured-step' is not used: {reason}"
    assert messages.texts == ([expected] if device == "cuda" else [])


def test_steps_are_captured_again_when_constants_of_them_change(made):
    step, plain = zoo.accelerate(make_step(torch.optim.SGD)), make_step(torch.optim.SGD)
    batch = plain.model.example(3, 5, torch.Generator().manual_seed(0))
    for index in range(8):
        for each in (step, plain):
            each.optimiser.param_groups[0]["momentum"] = 0.1 * (index // 2)
        torch.testing.assert_close(step(batch), plain(batch))
    assert len(made) == 4
    for each in (step, plain):
        each.optimiser.param_groups[0]["momentum"] = 0.9
    torch.testing.assert_close(step(batch), plain(batch))
    assert len(made) == 4
    assert sum(len(graphed.shapes) for graphed in made) == 8


def test_a_step_adds_to_the_gradients_of_other_batches(made):
    step, plain = zoo.accelerate(make_step(torch.optim.SGD)), make_step(torch.optim.SGD)
    batches = [plain.model.example(n, 5, torch.Generator().manual_seed(n)) for n in (2, 3)]
    for each in (step, plain):
        each.compute_gradients(batches[0])
    torch.testing.assert_close(step(batches[1]), plain(batches[1]))
    assert not made
    torch.testing.assert_close(step.model.state_dict(), plain.model.state_dict())


@pytest.mark.parametrize(("accumulate", "capture"), [(1, True), (2, True), (2, False)])
def test_the_trainer_reports_once_that_accumulated_steps_are_not_captured(
    accumulate, capture, tmp_path
):
    local, messages = make_step(), Messages()
    processes = Processes(tmp_path, device="cpu")
    options = {"clip": None, "accumulate": accumulate, "capture": capture}
    step = GlobalStep(local.module, local.module, local.optimiser, processes, **options)
    processes.close()
    step.local.device = torch.device("cuda")
    trainer = SimpleNamespace(
        setup=SimpleNamespace(step=step), callbacks=[messages], _reported=set()
    )
    for _ in range(2):
        Trainer._report_path(trainer)
    found = [text for text in messages.texts if text.startswith("steps are not captured")]
    expected = ["steps are not captured: accumulate is 2"]
    assert found == (expected if (accumulate, capture) == (2, True) else [])


def test_laws_have_cases_where_all_plugins_are_installed():
    """Without cases they would be skipped."""
    calls = list(captured_step.CapturedStep().cases(torch.float32))
    assert [len(next(iter(call.arguments[0].values()))) for call in calls] == [3, 1]
