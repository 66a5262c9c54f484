"""The probe: a small input stored with the outputs that the model computed when it was saved.

It detects a changed implementation of a plugin or of torch, which the hashes of the weights cannot.
The input is stored instead of its seed, because random generators can change too.
"""

from __future__ import annotations

import base64
import contextlib
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from zoo.artifact.layout import DTYPE_NAMES, DTYPES, tensor_bytes
from zoo.errors import ZooError, truncate
from zoo.interfaces import Model
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.registry.blueprint import format_error
from zoo.registry.plugin_call import PluginCall

SEED = 0
SIZES = ((2, 5), (1, 5), (1, 1))
"""Batch size and length of the input, in order of preference."""
MAX_INPUT_BYTES = 1_000_000
MAX_WEIGHT_BYTES = 4_000_000_000
"""Maximum size of the input, and of a model that is run at each save."""
SMALL_INPUT_BYTES = 10_000
MAX_INPUT_RATIO = 4
"""A stored input is run if it has at most `SMALL_INPUT_BYTES`, or this many times the size of the
current example; examples of earlier versions can be larger."""
MAX_SAMPLES = 256
TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4}
DEFAULT_TOLERANCE = 3e-2
"""Allowed difference, relative to the largest absolute output or to 1, whichever is larger."""
_RENAMED = {
    "choices": "samples",
    "counted": "loss_mask",
    "looks": "attention_weights",
    "parts": "auxiliary",
}
"""Batch keys and output fields that had another name in earlier versions."""


class NotRunnable(ZooError):
    """Raised when a model does not run on its example."""


def record_probe(model: Model) -> dict[str, Any]:
    """Return the probe of a model, or `{"skipped": reason}`. The model is not changed.

    Raises:
        NotRunnable: if the model does not run on its example.
    """
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    if weights > MAX_WEIGHT_BYTES:
        return {
            "skipped": f"the weights have {weights:,} bytes; the probe is recorded for at "
            f"most {MAX_WEIGHT_BYTES:,} bytes"
        }
    try:
        with PluginCall(), _preserve_state(model):
            inputs = example_inputs(model)
            if inputs is None:
                return {"skipped": f"the smallest example has more than {MAX_INPUT_BYTES:,} bytes"}
            return {
                "inputs": {name: _encode_tensor(tensor) for name, tensor in inputs.items()},
                "outputs": {
                    n: _summarize_tensor(t) for n, t in _float_outputs(model, inputs).items()
                },
            }
    except Exception as error:
        reason = f"the model does not run on its example: {format_error(error)}"
        raise NotRunnable(truncate(reason, 300)) from error


def compare_probe(model: Model, probe: Mapping[str, Any]) -> list[str]:
    """Return how the model's outputs differ from the stored ones; newer versions may have more.

    Raises an exception of any type if the probe is invalid.
    """
    _check_input_size(model, probe["inputs"])
    inputs = {_current_name(name): _decode_tensor(row) for name, row in probe["inputs"].items()}
    outputs = example_outputs(model, inputs)
    expected = {_current_name(name): row for name, row in probe["outputs"].items()}
    differences = [f"{name} is missing" for name in expected if name not in outputs]
    if not any(tensor.numel() for tensor in outputs.values()):
        differences.append("the outputs of the stored input are empty")
    for name, tensor in outputs.items():
        if name in expected:
            differences += [f"{name} {text}" for text in _compare_output(tensor, expected[name])]
    return differences


def _current_name(name: str) -> str:
    """Return the current name of a batch key or output field stored by an earlier version."""
    return ".".join(_RENAMED.get(part, part) for part in name.split("."))


def example_inputs(model: Model) -> dict[str, Tensor] | None:
    """Return the input of a probe; None if the smallest example is too large."""
    for batch, length in SIZES:
        inputs = model.example(batch, length, torch.Generator().manual_seed(SEED))
        if sum(t.numel() * t.element_size() for t in inputs.values()) <= MAX_INPUT_BYTES:
            return inputs
    return None


def example_outputs(model: Model, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the floating-point outputs of a model by name, in evaluation mode, with the seed of
    probes. The model is not changed."""
    with _preserve_state(model):
        return _float_outputs(model, inputs)


def _check_input_size(model: Model, rows: Mapping[str, Any]) -> None:
    """Raise ZooError if a stored input is much larger than the one that `record_probe` stores.

    The memory of a model can grow with the square of the length of its input.
    """
    size = 0
    for row in rows.values():
        # An empty dimension does not limit the memory that the others take.
        elements = math.prod(max(1, length) for length in row["shape"])
        size += max(elements * DTYPES[row["dtype"]].itemsize, 3 * len(row["data"]) // 4)
    if size <= SMALL_INPUT_BYTES:
        return
    with _preserve_state(model):
        example = example_inputs(model) or {}
    recorded = sum(tensor.numel() * tensor.element_size() for tensor in example.values())
    max_bytes = max(SMALL_INPUT_BYTES, MAX_INPUT_RATIO * recorded)
    if size > max_bytes:
        raise ZooError(
            f"the input has {size:,} bytes; at most {max_bytes:,} are allowed, because the input "
            f"that is stored when the model is saved has {recorded:,}"
        )


def _float_outputs(model: Model, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the floating-point outputs of a model by name."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    batch = {name: tensor.to(device) for name, tensor in inputs.items()}
    # `forward` instead of a call: saving must not run the user's hooks or compile the model.
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
    """Set evaluation mode and disable gradients; restore modes, random states and buffers."""
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
            # torch warns if a CPU has no instructions for bfloat16.
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "mkldnn_matmul failed", UserWarning)
            for kind in {device.type for device in devices}:
                stack.enter_context(torch.autocast(kind, enabled=False))
            stack.enter_context(evaluation_mode(model))
            if "torch._dynamo" in sys.modules:  # compiled modules run without compiling again
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            torch.default_generator.manual_seed(SEED)  # torch.manual_seed would seed all GPUs
            for device in cuda:
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(SEED)
            yield
    finally:
        with torch.no_grad():
            for table, key, buffer, before in buffers:
                table[key] = buffer
                if not torch.equal(buffer, before):
                    buffer.copy_(before)


def _encode_tensor(tensor: Tensor) -> dict[str, Any]:
    data = base64.b64encode(tensor_bytes(tensor)).decode()
    return {"dtype": DTYPE_NAMES[tensor.dtype], "shape": list(tensor.shape), "data": data}


def _decode_tensor(row: Mapping[str, Any]) -> Tensor:
    raw = bytearray(base64.b64decode(row["data"], validate=True))
    flat = torch.frombuffer(raw, dtype=DTYPES[row["dtype"]]) if raw else torch.empty(0)
    return flat.to(DTYPES[row["dtype"]]).reshape(row["shape"])


def _summarize_tensor(tensor: Tensor) -> dict[str, Any]:
    """Return evenly spaced elements of a tensor, and its norm."""
    flat = tensor.reshape(-1)
    every = max(1, -(-flat.numel() // MAX_SAMPLES))
    return {
        "dtype": DTYPE_NAMES[tensor.dtype],
        "shape": list(tensor.shape),
        "every": every,
        "norm": float(flat.double().nan_to_num(0, 0, 0).norm()),
        "sample": _encode_tensor(flat[::every].double()),
        "tolerance": _max_tolerance(tensor),
    }


def _max_tolerance(tensor: Tensor) -> float:
    return TOLERANCE.get(tensor.dtype, DEFAULT_TOLERANCE)


def _compare_output(tensor: Tensor, expected: Mapping[str, Any]) -> Iterator[str]:
    if list(tensor.shape) != expected["shape"]:
        yield f"has shape {list(tensor.shape)}, expected {expected['shape']}"
        return
    summary = _summarize_tensor(tensor)
    sample, stored = _decode_tensor(summary["sample"]), _decode_tensor(expected["sample"])
    finite = stored.isfinite()
    if sample.shape != stored.shape or not torch.equal(sample.isfinite(), finite):
        yield "is not finite at the same positions"
        return
    scale = max(1.0, float(stored[finite].abs().max()) if finite.any() else 0.0)
    # A file cannot allow more than the dtype of the output needs; NaN is not less either.
    tolerance, bound = float(expected["tolerance"]), _max_tolerance(tensor)
    tolerance = tolerance if tolerance < bound else bound
    allowed = tolerance * scale
    difference = float((sample[finite] - stored[finite]).abs().max()) if finite.any() else 0.0
    norm, expected_norm = summary["norm"], expected["norm"]
    if difference > allowed:
        yield f"differs by {difference:.3g}; at most {allowed:.3g} is allowed"
    elif not abs(norm - expected_norm) <= tolerance * max(1.0, expected_norm):
        yield f"has norm {norm:.6g}, expected {expected_norm:.6g}"
