"""On a CUDA device: captured steps equal steps that are not captured, also after a restart."""

from contextlib import nullcontext
from functools import partial

import pytest
import torch
from memory_kit import limited_memory
from training_kit import make_spec, set_dropout, weights, write_files

import zoo
from zoo.acceleration.binding import bound_accelerations
from zoo.training.callback import Callback
from zoo.training.local_step import LocalStep, LossModule
from zoo_fast.device.compiled_function import CompiledFunction
from zoo_fast.device.cuda_graph import GraphedFunction
from zoo_fast.training import early_transfer
from zoo_fast.training.length_padding import LengthPadding

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device"),
]


TOLERANCE = {
    "float32": {"rtol": 1e-3, "atol": 1e-4},
    "bfloat16": {"rtol": 5e-2, "atol": 5e-2},  # Adam makes large updates of gradients near 0
}


def train_steps(
    name,
    capture,
    *,
    steps=20,
    clip=1.0,
    optimiser=torch.optim.AdamW,
    autocast=nullcontext,
    pin=False,
):
    torch.manual_seed(0)
    model = zoo.compose(name).to("cuda").train()
    module = zoo.accelerate(LossModule(model, zoo.objective(name).to("cuda")))
    step = LocalStep(
        module,
        model,
        optimiser(model.parameters(), lr=1e-3, fused=True),
        device=torch.device("cuda"),
        clip=clip,
        autocast=autocast,
    )
    zoo.accelerate(step, enabled=capture)
    generator = torch.Generator().manual_seed(0)
    batches = [model.example(4, length, generator) for length in (8, 16, 8)]
    batches = [LengthPadding(model)(batch) for batch in batches]
    if pin:
        batches = [{key: t.cpu().pin_memory() for key, t in batch.items()} for batch in batches]
    losses = []
    for index in range(steps):
        step.set_lr((index + 1) / steps)
        losses.append(step(batches[index % 3])[0])
    return model, torch.stack(losses), step


def why_not_captured(step):
    (captured,) = bound_accelerations(step)
    return captured.why_not(step, step.device)


COMPILED = {"ntm-tiny": [1], "dnc-tiny": [1], "draw-tiny": [1, 1]}
"""Number of shapes for which functions are compiled: that of one batch size."""


def compiled_shapes(model):
    """Return the number of compiled shapes of each function that can be compiled."""
    return [
        sum(compiled is not None for compiled in function._compiled.values())
        for part in model.modules()
        for acceleration in bound_accelerations(part)
        for function in vars(acceleration).values()
        if isinstance(function, CompiledFunction)
    ]


@pytest.mark.parametrize(
    "name", ["transformer-tiny", "ntm-tiny", "dnc-tiny", "draw-tiny", "hierarchical-tiny"]
)
def test_captured_steps_equal_others(name):
    eager, expected, _ = train_steps(name, capture=False)
    model, losses, step = train_steps(name, capture=True)
    assert why_not_captured(step) is None
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-5)
    assert compiled_shapes(model) == COMPILED.get(name, [])
    assert not any(compiled_shapes(eager))
    for a, b in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_steps_under_autocast_are_captured():
    autocast = partial(torch.autocast, "cuda", torch.bfloat16)
    _, expected, _ = train_steps("transformer-tiny", capture=False, autocast=autocast)
    _, losses, step = train_steps("transformer-tiny", capture=True, autocast=autocast)
    assert why_not_captured(step) is None
    torch.testing.assert_close(losses, expected, rtol=2e-2, atol=2e-2)


def test_steps_of_batches_that_are_sent_early_are_the_same(monkeypatch):
    model, expected, _ = train_steps("transformer-tiny", capture=True)
    monkeypatch.setattr(early_transfer, "MIN_BYTES", 1)
    other, losses, step = train_steps("transformer-tiny", capture=True, pin=True)
    (captured,) = bound_accelerations(step)
    assert len(captured._transfer._buffers[1]) > 0
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-5)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_sgd_is_captured():
    _, losses, step = train_steps("transformer-tiny", True, optimiser=torch.optim.SGD)
    assert why_not_captured(step) is None
    expected = train_steps("transformer-tiny", False, optimiser=torch.optim.SGD)[1]
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-5)


def test_a_batch_as_long_as_the_learned_positions_trains():
    override = {"position": {"type": "learned", "length": 10}}
    torch.manual_seed(0)
    spec = {
        "zoo": 1,
        "name": "bounded",
        "extends": "transformer-tiny",
        "model": {"encoder": override, "decoder": override},
    }
    model = zoo.compose(spec).to("cuda").train()
    module = zoo.accelerate(LossModule(model, zoo.objective("transformer-tiny").to("cuda")))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    step = zoo.accelerate(LocalStep(module, model, optimiser, device=torch.device("cuda")))
    shapes = []
    for length in (5, 9, 10, 9, 10, 5) * 4:
        batch = model.example(2, length, torch.Generator().manual_seed(length))
        batch["target"] = batch["target"][:, : length + 1]  # as many inputs as source tokens
        assert step(batch)[0].isfinite()
        shapes.append(LengthPadding(model)(batch)["source"].shape[1])
    assert why_not_captured(step) is None
    assert set(shapes) == {8, 10}


class CountingLoss(LossModule):
    """Counts its calls in a buffer, as statistics of BatchNorm do."""

    def __init__(self, model, objective):
        super().__init__(model, objective)
        self.register_buffer("calls", torch.zeros((), device="cuda"))

    def forward(self, batch):
        self.calls += 1
        return super().forward(batch)


def test_steps_go_on_without_graphs_that_have_the_memory_of_another_shape():
    def make_step():
        torch.manual_seed(0)
        model = zoo.compose("transformer-tiny").to("cuda").train()
        module = zoo.accelerate(CountingLoss(model, zoo.objective("transformer-tiny").to("cuda")))
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        return LocalStep(module, model, optimiser, device=torch.device("cuda"))

    plain, step = make_step(), make_step()
    zoo.accelerate(plain, enabled=False)
    zoo.accelerate(step, enabled=True)
    generator = torch.Generator().manual_seed(0)
    first, second = (plain.model.example(2048, length, generator) for length in (64, 72))
    for _ in range(2):
        plain(first)
        step(first)
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    torch.manual_seed(1)
    expected = [plain(first)[0], plain(second)[0]]
    torch.manual_seed(1)
    losses = [step(first)[0]]
    torch.cuda.empty_cache()
    size = torch.cuda.memory_reserved() - before  # of the graph
    with limited_memory(size // 2):
        losses.append(step(second)[0])
    assert why_not_captured(step) == "there is not enough memory for graphs of several shapes"
    torch.testing.assert_close(torch.stack(losses), torch.stack(expected), rtol=1e-4, atol=1e-5)
    assert step.module.calls == plain.module.calls == 4
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < before + size // 2


def draw(inputs):
    return torch.nn.functional.dropout(inputs["x"], 0.5)


def draw_without_a_graph(x, count):
    torch.manual_seed(0)
    return [draw({"x": x}) for _ in range(count)]


def test_random_numbers_advance_as_without_a_graph():
    x = torch.ones(1000, device="cuda")
    expected = draw_without_a_graph(x, 5)
    state = torch.cuda.get_rng_state()
    torch.manual_seed(0)
    graphed = GraphedFunction(draw)
    found = [graphed({"x": x}).clone() for _ in range(5)]
    assert graphed.graphs == 1
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert torch.equal(torch.cuda.get_rng_state(), state)


@pytest.mark.parametrize("warmup", [0, 2])
def test_a_function_that_waits_for_the_device_is_not_captured(warmup):
    def scale(inputs):
        return inputs["x"] * inputs["x"].sum().item()

    graphed = GraphedFunction(scale, warmup=warmup)
    x = torch.ones(4, device="cuda")
    results = [graphed({"x": x}).clone() for _ in range(4)]
    assert all(torch.equal(result, 4 * x) for result in results)
    expected = "capture failed" if warmup == 0 else "waits for the device"
    assert expected in graphed.reason
    torch.randn(4, device="cuda")  # the generator is not left in the state of a capture
    other = GraphedFunction(lambda inputs: inputs["x"] + 1)
    assert all(torch.equal(other({"x": x}), x + 1) for _ in range(4))
    assert other.graphs == 1


def test_other_graphs_are_replayed_after_a_capture_that_failed():
    x = torch.ones(1000, device="cuda")
    expected = draw_without_a_graph(x, 6)
    torch.manual_seed(0)
    graphed = GraphedFunction(draw)
    found = [graphed({"x": x}).clone() for _ in range(4)]
    waits = GraphedFunction(lambda inputs: inputs["x"] * inputs["x"].sum().item(), warmup=0)
    waits({"x": x})
    assert "capture failed" in waits.reason
    found += [graphed({"x": x}).clone() for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_the_most_frequent_shapes_are_captured():
    graphed = GraphedFunction(lambda inputs: inputs["x"] + 1, warmup=1, max_graphs=2)
    for size in (1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3):
        graphed({"x": torch.ones(size, device="cuda")})
    captured = [key[0][1][0] for key, r in graphed._captures.items() if r.graph is not None]
    assert captured == [1, 3]


def test_parts_of_a_function_that_is_captured_see_it():
    seen = []

    def add_one(inputs):
        seen.append((GraphedFunction.is_capturing(), graphed.is_last_warmup))
        return inputs["x"] + 1

    graphed = GraphedFunction(add_one, warmup=2)
    for _ in range(4):
        graphed({"x": torch.ones(1, device="cuda")})
    assert seen == [(True, False), (True, True), (True, False)]  # two warm-up calls, the capture
    assert not GraphedFunction.is_capturing()


class Messages(Callback):
    def __init__(self):
        self.texts = []

    def on_message(self, text):
        self.texts.append(text)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_resumed_run_equals_an_uninterrupted_one(precision, tmp_path):
    (tmp_path / "texts").mkdir()
    files = write_files(tmp_path / "texts")

    def run(folder, steps, resume=False):
        settings = {"steps": steps, "checkpoints": {"every": 6}, "precision": precision}
        spec = set_dropout(make_spec(files, **settings), 0.1)
        messages = Messages()
        callbacks = (messages,)
        zoo.train(spec, output=tmp_path / folder, resume=resume, device="cuda", callbacks=callbacks)
        assert not [text for text in messages.texts if "is not used" in text]
        return weights(tmp_path / folder / "model.safetensors")

    expected = run("whole", 12)
    run("parts", 6)
    found = run("parts", 12, resume=True)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, **TOLERANCE[precision])
