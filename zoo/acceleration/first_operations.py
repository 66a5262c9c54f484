"""First calls of torch's operations, while plugins are imported and models are built."""

from __future__ import annotations

import logging
from functools import partial

import torch
import torch.nn.functional as F

from zoo.acceleration.current_device import with_index
from zoo.acceleration.preparation import claim, start_thread

_LOG = logging.getLogger(__name__)


def prepare_operations(device: torch.device) -> None:
    """In a thread, call operations that most models use, once in a process for each GPU.

    With the first call of an operation, torch loads a file of kernels to the GPU, which takes 10 to
    25 ms. Products and attention also load libraries, which takes a third of a second.
    """
    device = with_index(device)
    if device.type == "cuda" and claim(call_operations, device):
        start_thread(partial(_run, device), "operations")


def _run(device: torch.device) -> None:
    try:
        call_operations(device)
    except Exception as error:  # the first call does it again, and reports it
        _LOG.info("operations are not prepared: %s", error)


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
