"""The golden probe: a small input, and what the model made of it when it was saved.

Weights can be whole and a model still answer otherwise than it did, because a plugin or torch
has changed. The input is kept rather than its seed, since generators change too.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from zoo.artifact.layout import DTYPES, NAMES
from zoo.errors import shortened
from zoo.interfaces import Model
from zoo.registry.blueprint import in_a_line

SEED = 0
SIZES = ((2, 5), (1, 5), (1, 1))
"""Batch and length of the input; smaller ones where the first is too much to keep."""
MAX_INPUT = 1_000_000
MAX_WEIGHTS = 4_000_000_000
"""Bytes of input to keep, and of weights to run, at the most."""
SAMPLES = 256
TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4}
COARSE = 3e-2
"""What an output may differ by, against the largest of it: other machines add up otherwise."""


def probed(model: Model) -> dict[str, Any]:
    """What to keep of a run of the model, or ``{"skipped": why}``. Leaves the model as it was."""
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    if weights > MAX_WEIGHTS:
        return {"skipped": f"{weights:,} bytes of weights are too many to run at each save"}
    try:
        with _undisturbed(model):
            inputs = _example(model)
            if inputs is None:
                return {"skipped": f"no example of it is smaller than {MAX_INPUT:,} bytes"}
            return {
                "inputs": {name: _kept(tensor) for name, tensor in inputs.items()},
                "outputs": {n: _sampled(t) for n, t in _outputs(model, inputs).items()},
            }
    except Exception as error:
        return {"skipped": shortened(f"it does not run on its example: {in_a_line(error)}", 300)}


def drift(model: Model, probe: Mapping[str, Any]) -> list[str]:
    """How the model's answers to the probe differ from those it gave; ValueError if it is odd."""
    kept = {name: _tensor(row) for name, row in probe["inputs"].items()}
    with _undisturbed(model):
        now = _outputs(model, kept)
    told = probe["outputs"]
    wrong = [f"{name} is missing" for name in told if name not in now]
    wrong += [f"{name} is new" for name in now if name not in told]
    for name, tensor in now.items():
        if name in told:
            wrong += [f"{name} {why}" for why in _differences(tensor, told[name])]
    return wrong


def _example(model: Model) -> dict[str, Tensor] | None:
    for batch, length in SIZES:
        inputs = model.example(batch, length, torch.Generator().manual_seed(SEED))
        if sum(t.numel() * t.element_size() for t in inputs.values()) <= MAX_INPUT:
            return inputs
    return None


def _outputs(model: Model, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every floating-point tensor the model answers with, by name."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    batch = {name: tensor.to(device) for name, tensor in inputs.items()}
    # Not called but its forward alone, so that no hook hears of it and nothing is compiled.
    return dict(_floats(model.forward(batch), ""))


def _floats(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield name, value.detach().cpu()
        return
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _floats(inner, f"{name}.{key}" if name else str(key))


@contextlib.contextmanager
def _undisturbed(model: Model) -> Iterator[None]:
    """Evaluation without gradients; modes, random states and buffers come back as they were."""
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module._buffers, key, buffer, buffer.clone())
        for module in model.modules()
        for key, buffer in module._buffers.items()
        if buffer is not None
    ]
    devices = {tensor.device for tensor in model.parameters()}
    cuda = [device for device in devices if device.type == "cuda"]
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(devices=cuda))
            stack.enter_context(torch.no_grad())
            for kind in {device.type for device in devices}:
                stack.enter_context(torch.autocast(kind, enabled=False))
            torch.manual_seed(SEED)
            model.eval()
            yield
    finally:
        for module, training in modes:
            module.training = training
        with torch.no_grad():
            for table, key, buffer, before in buffers:
                table[key] = buffer
                if not torch.equal(buffer, before):
                    buffer.copy_(before)


def _kept(tensor: Tensor) -> dict[str, Any]:
    raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    data = base64.b64encode(raw).decode()
    return {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data": data}


def _tensor(row: Mapping[str, Any]) -> Tensor:
    raw = bytearray(base64.b64decode(row["data"], validate=True))
    flat = torch.frombuffer(raw, dtype=DTYPES[row["dtype"]]) if raw else torch.empty(0)
    return flat.to(DTYPES[row["dtype"]]).reshape(row["shape"])


def _sampled(tensor: Tensor) -> dict[str, Any]:
    """Some numbers of the tensor, evenly spread, and the length of all of them as one vector."""
    flat = tensor.reshape(-1)
    every = max(1, -(-flat.numel() // SAMPLES))
    return {
        "dtype": NAMES[tensor.dtype],
        "shape": list(tensor.shape),
        "every": every,
        "norm": float(flat.double().nan_to_num(0, 0, 0).norm()),
        "sample": _kept(flat[::every].double()),
        "tolerance": TOLERANCE.get(tensor.dtype, COARSE),
    }


def _differences(tensor: Tensor, told: Mapping[str, Any]) -> Iterator[str]:
    if list(tensor.shape) != told["shape"]:
        yield f"is {list(tensor.shape)}, was {told['shape']}"
        return
    now = _sampled(tensor)
    ours, theirs = _tensor(now["sample"]), _tensor(told["sample"])
    finite = theirs.isfinite()
    if ours.shape != theirs.shape or not torch.equal(ours.isfinite(), finite):
        yield "is not finite where it was, or was not where it is"
        return
    scale = max(1.0, float(theirs[finite].abs().max()) if finite.any() else 0.0)
    allowed = told["tolerance"] * scale
    furthest = float((ours[finite] - theirs[finite]).abs().max()) if finite.any() else 0.0
    if furthest > allowed:
        yield f"differs by {furthest:.3g}, more than {allowed:.3g}"
    elif abs(now["norm"] - told["norm"]) > told["tolerance"] * max(1.0, told["norm"]):
        yield f"has the norm {now['norm']:.6g}, had {told['norm']:.6g}"
