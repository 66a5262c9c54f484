"""Laws of models."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from zoo.artifact import load, save
from zoo.interfaces import Model
from zoo.spec.composition import compose
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.helpers import assert_close, assert_equal


def _compose(config: Configuration) -> Model:
    spec = {"zoo": 1, "name": "under-test", "model": config.data}
    return compose(spec, registry=config.registry).eval()


def _batch(model: Model, batch: int = 3, length: int = 5) -> dict[str, Any]:
    return model.example(batch, length, torch.Generator().manual_seed(0))


def runs_example(config: Configuration) -> None:
    """The model runs on its example; logits, targets and masks match, and outputs are finite."""
    model = _compose(config)
    outputs = model(_batch(model))
    steps = outputs.logits.shape[:-1]
    assert outputs.mask.shape == steps, "logits and mask do not match"
    if outputs.target_mask is not None:
        assert outputs.target_mask.shape == outputs.targets.shape, (
            "targets and target_mask have different shapes"
        )
        assert outputs.targets.shape[0] == steps[0], "logits and targets have different batch sizes"
    else:
        allowed = (steps, outputs.logits.shape)
        assert outputs.targets.shape in allowed, "logits and targets do not match"
    assert all(tensor.isfinite().all() for tensor in outputs.differentiable()), (
        "an output is not finite"
    )


def save_load(config: Configuration) -> None:
    """A saved and loaded model has bitwise equal weights and logits."""
    model = _compose(config)
    with tempfile.TemporaryDirectory() as folder:
        path = save(model, Path(folder) / "model.safetensors")
        again = load(path, registry=config.registry).eval()
    state = again.state_dict()
    for name, weight in model.state_dict().items():
        assert_equal(state[name], weight, f"weight {name}")
    batch = _batch(model)
    assert_equal(again(batch).logits, model(batch).logits, "a logit")


def parameter_gradients(config: Configuration) -> None:
    """Every parameter has a gradient from the outputs."""
    model = _compose(config).train()
    generator = torch.Generator().manual_seed(1)
    outputs = [tensor for tensor in model(_batch(model)).differentiable() if tensor.requires_grad]
    loss = sum(
        (tensor * torch.randn(tensor.shape, generator=generator)).sum() for tensor in outputs
    )
    torch.autograd.backward(loss)
    missing = [
        n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0
    ]
    assert not missing, f"no gradient for {', '.join(missing)}"


def compiles(config: Configuration) -> None:
    """The forward pass compiles without graph breaks and gives the same logits."""
    model = _compose(config)
    batch = _batch(model)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert_close(compiled(batch).logits, model(batch).logits, "logits when compiled", 1e-5)


def matches_gpu(config: Configuration) -> None:
    """Logits on the CPU and on the GPU agree within tolerance."""
    if not torch.cuda.is_available():
        raise NotApplicable("torch finds no CUDA device")
    model = _compose(config)
    batch = _batch(model)
    logits = model(batch).logits
    on_gpu = model.to("cuda")({key: value.to("cuda") for key, value in batch.items()}).logits
    assert_close(on_gpu.cpu(), logits, "logits on the GPU", 1e-4)


LAWS = (
    Law("runs-example", runs_example),
    Law("save-load", save_load),
    Law("parameter-gradients", parameter_gradients),
    Law("compiles", compiles),
    Law("matches-gpu", matches_gpu),
)
