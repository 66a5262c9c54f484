"""Laws of models."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from zoo.artifact import load, save
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.batches import MODEL_LAWS as BATCH_LAWS
from zoo.testing.laws.contracts import MODEL_LAWS as CONTRACT_LAWS
from zoo.testing.laws.helpers import assert_close, assert_equal, compose_model, example_batch


def runs_example(config: Configuration) -> None:
    """The model runs on its example; logits, targets and masks match, and outputs are finite."""
    model = compose_model(config)
    outputs = model(example_batch(model))
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
    model = compose_model(config)
    with tempfile.TemporaryDirectory() as folder:
        path = save(model, Path(folder) / "model.safetensors")
        again = load(path, registry=config.registry).eval()
    state = again.state_dict()
    for name, weight in model.state_dict().items():
        assert_equal(state[name], weight, f"weight {name}")
    batch = example_batch(model)
    assert_equal(again(batch).logits, model(batch).logits, "a logit")


def parameter_gradients(config: Configuration) -> None:
    """Every parameter has a gradient from the outputs."""
    model = compose_model(config).train()
    generator = torch.Generator().manual_seed(1)
    outputs = [
        tensor for tensor in model(example_batch(model)).differentiable() if tensor.requires_grad
    ]
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
    model = compose_model(config)
    batch = example_batch(model)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert_close(compiled(batch).logits, model(batch).logits, "logits when compiled", 1e-5)


def matches_gpu(config: Configuration) -> None:
    """Logits on the CPU and on the GPU agree within tolerance."""
    if not torch.cuda.is_available():
        raise NotApplicable("torch finds no CUDA device")
    model = compose_model(config)
    batch = example_batch(model)
    logits = model(batch).logits
    on_gpu = model.to("cuda")({key: value.to("cuda") for key, value in batch.items()}).logits
    assert_close(on_gpu.cpu(), logits, "logits on the GPU", 1e-4)


LAWS = (
    Law("runs-example", runs_example),
    Law("save-load", save_load),
    Law("parameter-gradients", parameter_gradients),
    Law("compiles", compiles),
    Law("matches-gpu", matches_gpu),
    *CONTRACT_LAWS,
    *BATCH_LAWS,
)
