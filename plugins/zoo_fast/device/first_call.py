"""What a first call reads besides its compiled kernels."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from importlib import import_module

import torch

TRITON_MODULES = ("triton.experimental.gluon.nvidia.hopper", "triton.tools.tensor_descriptor")
"""What Triton imports with the first launch."""


def prepare_kernels(device: torch.device, modules: Iterable[str]) -> None:
    """Import the modules of kernels, compute the keys with which Triton finds compiled kernels on
    the disk, and load its driver and the kernel of attention over few keys."""
    for name in modules:
        import_module(name)
    for name in TRITON_MODULES:
        with contextlib.suppress(ImportError):
            import_module(name)
    heads = torch.zeros(1, 1, 64, 64, dtype=torch.bfloat16, device=device)
    with contextlib.suppress(RuntimeError):  # the GPU does not have this kernel
        torch.ops.aten._scaled_dot_product_flash_attention(heads, heads, heads, 0.0, True)
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    driver.active.get_current_target()
    loaded = [module for name, module in list(sys.modules.items()) if name.startswith("zoo_fast.")]
    for module in loaded:
        for value in list(vars(module).values()):
            if isinstance(value, JITFunction):
                _ = value.cache_key  # of its source and of the functions that it calls
