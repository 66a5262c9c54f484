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

from zoo.artifact.layout import DTYPE_NAMES, DTYPES
from zoo.errors import truncate
from zoo.interfaces import Model
from zoo.registry.blueprint import format_error

SEED = 0
SIZES = ((2, 5), (1, 5), (1, 1))
"""Batch and length of the input; smaller ones where the first is too much to keep."""
MAX_INPUT_BYTES = 1_000_000
MAX_WEIGHT_BYTES = 4_000_000_000
"""Bytes of input to keep, and of weights to run, at the most."""
MAX_SAMPLES = 256
TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4}
DEFAULT_TOLERANCE = 3e-2
"""What an output may differ by, against the largest of it: other machines add up otherwise."""
_RENAMED = {"choices": "samples", "counted": "loss_mask", "looks": "attention_weights"}
"""Batch keys and output fields that had another name in earlier versions."""


def record_probe(model: Model) -> dict[str, Any]:
    """What to keep of a run of the model, or ``{"skipped": why}``. Leaves the model as it was."""
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    if weights > MAX_WEIGHT_BYTES:
        return {"skipped": f"{weights:,} bytes of weights are too many to run at each save"}
    try:
        with _preserve_state(model):
            inputs = _example_inputs(model)
            if inputs is None:
                return {"skipped": f"no example of it is smaller than {MAX_INPUT_BYTES:,} bytes"}
            return {
                "inputs": {name: _encode_tensor(tensor) for name, tensor in inputs.items()},
                "outputs": {
                    n: _summarize_tensor(t) for n, t in _float_outputs(model, inputs).items()
                },
            }
    except Exception as error:
        return {"skipped": truncate(f"it does not run on its example: {format_error(error)}", 300)}


def compare_probe(model: Model, probe: Mapping[str, Any]) -> list[str]:
    """How the model's answers to the probe differ from those it gave; ValueError if it is odd."""
    kept = {_current_name(name): _decode_tensor(row) for name, row in probe["inputs"].items()}
    with _preserve_state(model):
        now = _float_outputs(model, kept)
    expected = {_current_name(name): row for name, row in probe["outputs"].items()}
    wrong = [f"{name} is missing" for name in expected if name not in now]
    wrong += [f"{name} is new" for name in now if name not in expected]
    for name, tensor in now.items():
        if name in expected:
            wrong += [f"{name} {why}" for why in _compare_output(tensor, expected[name])]
    return wrong


def _current_name(name: str) -> str:
    """Return the current name of a batch key or output field stored by an earlier version."""
    return ".".join(_RENAMED.get(part, part) for part in name.split("."))


def _example_inputs(model: Model) -> dict[str, Tensor] | None:
    for batch, length in SIZES:
        inputs = model.example(batch, length, torch.Generator().manual_seed(SEED))
        if sum(t.numel() * t.element_size() for t in inputs.values()) <= MAX_INPUT_BYTES:
            return inputs
    return None


def _float_outputs(model: Model, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every floating-point tensor the model answers with, by name."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    batch = {name: tensor.to(device) for name, tensor in inputs.items()}
    # Not called but its forward alone, so that no hook hears of it and nothing is compiled.
    return dict(_iter_float_tensors(model.forward(batch), ""))


def _iter_float_tensors(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield name, value.detach().cpu()
        return
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _iter_float_tensors(inner, f"{name}.{key}" if name else str(key))


@contextlib.contextmanager
def _preserve_state(model: Model) -> Iterator[None]:
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


def _encode_tensor(tensor: Tensor) -> dict[str, Any]:
    raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    data = base64.b64encode(raw).decode()
    return {"dtype": DTYPE_NAMES[tensor.dtype], "shape": list(tensor.shape), "data": data}


def _decode_tensor(row: Mapping[str, Any]) -> Tensor:
    raw = bytearray(base64.b64decode(row["data"], validate=True))
    flat = torch.frombuffer(raw, dtype=DTYPES[row["dtype"]]) if raw else torch.empty(0)
    return flat.to(DTYPES[row["dtype"]]).reshape(row["shape"])


def _summarize_tensor(tensor: Tensor) -> dict[str, Any]:
    """Some numbers of the tensor, evenly spread, and the length of all of them as one vector."""
    flat = tensor.reshape(-1)
    every = max(1, -(-flat.numel() // MAX_SAMPLES))
    return {
        "dtype": DTYPE_NAMES[tensor.dtype],
        "shape": list(tensor.shape),
        "every": every,
        "norm": float(flat.double().nan_to_num(0, 0, 0).norm()),
        "sample": _encode_tensor(flat[::every].double()),
        "tolerance": TOLERANCE.get(tensor.dtype, DEFAULT_TOLERANCE),
    }


def _compare_output(tensor: Tensor, expected: Mapping[str, Any]) -> Iterator[str]:
    if list(tensor.shape) != expected["shape"]:
        yield f"is {list(tensor.shape)}, was {expected['shape']}"
        return
    now = _summarize_tensor(tensor)
    ours, theirs = _decode_tensor(now["sample"]), _decode_tensor(expected["sample"])
    finite = theirs.isfinite()
    if ours.shape != theirs.shape or not torch.equal(ours.isfinite(), finite):
        yield "is not finite where it was, or was not where it is"
        return
    scale = max(1.0, float(theirs[finite].abs().max()) if finite.any() else 0.0)
    allowed = expected["tolerance"] * scale
    furthest = float((ours[finite] - theirs[finite]).abs().max()) if finite.any() else 0.0
    if furthest > allowed:
        yield f"differs by {furthest:.3g}, more than {allowed:.3g}"
    elif abs(now["norm"] - expected["norm"]) > expected["tolerance"] * max(1.0, expected["norm"]):
        yield f"has the norm {now['norm']:.6g}, had {expected['norm']:.6g}"
