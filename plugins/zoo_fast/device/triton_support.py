"""Conditions under which Triton kernels can be used, and the precision of products on a GPU."""

from __future__ import annotations

import importlib.util
import os
from functools import cache

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
        reason = why_not_triton_on(tensor.device.type, tensor.dtype)
        if reason is not None:
            return reason
    return None


def why_not_triton_on(device: str, dtype: torch.dtype = torch.float32) -> str | None:
    """Return the reason why Triton kernels cannot be used on a device type, None if they can."""
    mode = os.environ.get("ZOO_TRITON", "auto")
    if mode == "off":
        return "ZOO_TRITON is 'off'"
    if not is_installed():
        return "Triton is not installed"
    if device != "cuda" and (mode, device) != ("interpret", "cpu"):
        return f"the device is '{device}', not 'cuda'"
    if dtype.is_floating_point and dtype not in _DTYPES:
        return f"the dtype is {dtype}"
    return None


def dependent_launch(tensor: Tensor) -> dict[str, bool]:
    """Return the arguments of a kernel that uses programmatic dependent launch where available.

    Such a kernel starts while the one before it still runs. Its constant ``PDL`` says so; it then
    calls ``gdc_wait`` before it reads what other kernels write, and before it writes.
    """
    if tensor.is_cuda and _has_dependent_launch(tensor.device):
        return {"PDL": True, "launch_pdl": True}
    return {"PDL": False}


@cache
def shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory that a program can use; no limit on the CPU."""
    if device.type != "cuda":
        return 1 << 30
    properties = torch.cuda.get_device_properties(device)
    return int(getattr(properties, "shared_memory_per_block_optin", 64 * 1024)) - 1024


@cache
def _has_dependent_launch(device: torch.device) -> bool:
    if torch.version.hip is not None or torch.cuda.get_device_capability(device) < (9, 0):
        return False
    from triton.language.extra import cuda

    return hasattr(cuda, "gdc_wait")


_INSTALLED = importlib.util.find_spec("triton") is not None


def is_installed() -> bool:
    """Return whether Triton is installed."""
    return _INSTALLED


def float32_products() -> str:
    """Return how the library multiplies float32 matrices on a GPU: 'tf32', or exactly ('ieee',
    'none').

    The older `torch.get_float32_matmul_precision` raises an error after this one was set.
    """
    precision: str = torch.backends.cuda.matmul.fp32_precision
    return precision
