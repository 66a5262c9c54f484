"""First calls of torch's operations and of Triton, while plugins and models are prepared."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from zoo.acceleration.conditions import is_off
from zoo.acceleration.current_device import with_index
from zoo.acceleration.preparation import claim, start_thread

_LOG = logging.getLogger(__name__)


def prepare_operations(device: torch.device) -> None:
    """In threads, call operations that most models use, and let Triton hash its files, once in a
    process for each GPU.

    With the first call of an operation, torch loads a file of kernels to the GPU, which takes 10 to
    25 ms. Products and attention also load libraries, which takes a third of a second, and Triton's
    hash takes half a second.
    """
    device = with_index(device)
    if device.type == "cuda" and claim(call_operations, device):
        _start(partial(call_operations, device), "operations")
        if not is_off():
            _start(hash_triton, "compiled kernels")


def _start(function: Callable[[], None], what: str) -> None:
    start_thread(partial(_run, function, what), what)


def _run(function: Callable[[], None], what: str) -> None:
    try:
        function()
    except Exception as error:  # the first call does it again, and reports it
        _LOG.info("%s are not prepared: %s", what, error)


@torch.inference_mode()
def call_operations(device: torch.device) -> None:
    """Call operations with small inputs."""
    whole = torch.ones(2, 2, dtype=torch.long, device=device)
    single, half = whole.float(), whole.bfloat16()
    double, flags = single.double(), single.isneginf()
    torch._foreach_zero_([half, half])
    torch._foreach_copy_([half], [single])
    torch.cat([whole, torch.arange(2, device=device)[None] + 1])
    for result in (single.exp(), single.cos(), single.sin(), double / 2 * 2, whole % 2):
        flags |= result >= 2
    heads = half.new_zeros(1, 1, 64, 64)
    F.rms_norm(F.linear(heads, heads[0, 0]), (64,), heads[0, 0, 0])
    F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)


def hash_triton() -> None:
    """Compute the hash of Triton's own files, with which it finds compiled kernels on the disk, and
    which it keeps."""
    with contextlib.suppress(ImportError):
        from triton.runtime.cache import triton_key

        triton_key()
