"""Conditions under which Triton kernels can be used."""

from __future__ import annotations

import importlib.util
import os

import torch
from torch import Tensor

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def why_not_triton(*tensors: Tensor) -> str | None:
    """Return the reason why Triton kernels cannot process the tensors, None if they can.

    Kernels need Triton and a CUDA device, and compute in float32. The environment variable
    ``ZOO_TRITON`` is 'off' to use the reference paths, or 'interpret' to allow tensors on the CPU,
    for tests with Triton's interpreter (``TRITON_INTERPRET=1``).
    """
    if torch.compiler.is_compiling():
        return "the model is compiled"
    for tensor in tensors:
        reason = why_not_triton_on(tensor.device.type)
        if reason is not None:
            return reason
        if tensor.is_floating_point() and tensor.dtype not in _DTYPES:
            return f"the dtype is {tensor.dtype}"
    return None


def why_not_training_kernel(*tensors: Tensor) -> str | None:
    """Return the reason why the Triton kernels of a Transformer's training step cannot be used.

    On a GPU they are used in half precision only: the gradients of a Transformer of 6 + 6 blocks in
    float32 differed from those of the reference path by 5e-4.
    """
    if any(tensor.is_cuda and tensor.dtype == torch.float32 for tensor in tensors):
        return "the dtype is torch.float32"
    return why_not_triton(*tensors)


def why_not_triton_on(device: str) -> str | None:
    """Return the reason why Triton kernels cannot be used on a device type, None if they can."""
    mode = os.environ.get("ZOO_TRITON", "auto")
    if mode == "off":
        return "ZOO_TRITON is 'off'"
    if not _is_installed():
        return "Triton is not installed"
    if device != "cuda" and (mode, device) != ("interpret", "cpu"):
        return f"the device is '{device}', not 'cuda'"
    return None


_INSTALLED = importlib.util.find_spec("triton") is not None


def _is_installed() -> bool:
    return _INSTALLED
