"""Conditions and preparations of training steps that are captured as CUDA graphs."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from zoo.acceleration.module_hooks import has_hooks
from zoo.data.padding import MASK, pad_tensor
from zoo.interfaces import BatchSchema, Model

MULTIPLE = 8
"""Lengths are padded to a multiple of this, which also suits the tensor cores."""
MAX_GRAPHS = 64
"""Number of shapes that are captured. The graphs share their memory."""


def why_not_captured(
    module: nn.Module, optimiser: torch.optim.Optimizer, device: torch.device
) -> str | None:
    """Return the reason why a step cannot be captured; None if capture can be tried."""
    if device.type != "cuda":
        return f"the device is '{device.type}', not 'cuda'"
    if has_hooks(module):
        return "the model has module hooks"
    for group in optimiser.param_groups:
        if "capturable" not in group and not group.get("fused"):
            return f"optimiser {type(optimiser).__name__} has no option 'capturable' or 'fused'"
    return None


def make_capturable(optimiser: torch.optim.Optimizer) -> None:
    """Keep the learning rates and the step counts of an optimiser on the device.

    The state of a checkpoint has step counts on the CPU, unless the optimiser is fused.
    """
    for group in optimiser.param_groups:
        device = group["params"][0].device
        group["lr"] = torch.tensor(float(group["lr"]), device=device)
        if "capturable" in group:
            group["capturable"] = True
            for parameter in group["params"]:
                state = optimiser.state.get(parameter, {})
                if isinstance(state.get("step"), Tensor):
                    state["step"] = state["step"].to(device)


def pad_lengths(batch: Mapping[str, Tensor], model: Model) -> Mapping[str, Tensor]:
    """Pad the lengths of token sequences to a multiple, which does not change the outputs.

    Only dimensions of keys with token IDs are padded, in all keys that have them.
    """
    schema, outputs = model.batch_schema() or {}, model.output_schema()
    if (MASK in schema and MASK not in batch) or (outputs and outputs.logits == "candidate"):
        return batch  # padding would not be masked, or would be a candidate
    lengths = _lengths(batch, schema)
    return {key: _pad(tensor, key, schema, lengths) for key, tensor in batch.items()}


def _lengths(batch: Mapping[str, Tensor], schema: BatchSchema) -> dict[str, int]:
    """Return the padded size of each dimension of token sequences [B, S]."""
    lengths: dict[str, int] = {}
    for key, field in schema.items():
        if key in batch and field.dtype == "integer" and len(field.dims or ()) == 2:
            _, dim = field.dims or ()
            if isinstance(dim, str):
                shifted = len(field.prefix)  # the inputs are one shorter than from bos to eos
                length = batch[key].shape[1] - shifted
                lengths[dim] = -(-length // MULTIPLE) * MULTIPLE + shifted
    return lengths


def _pad(tensor: Tensor, key: str, schema: BatchSchema, lengths: Mapping[str, int]) -> Tensor:
    dims = (schema[key].dims or ()) if key in schema else ()
    sizes = [lengths.get(str(dim), size) for dim, size in zip(dims, tensor.shape, strict=False)]
    padded = pad_tensor(tensor, sizes, schema[key].pad) if key in schema else tensor
    return padded.pin_memory() if tensor.is_pinned() else padded
