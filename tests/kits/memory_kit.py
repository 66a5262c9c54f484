"""Limits of the memory of a CUDA device."""

from contextlib import contextmanager

import torch


@contextmanager
def limited_memory(further):
    """Limit the memory of the process to what is reserved now, and some further bytes."""
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    allowed = torch.cuda.memory_reserved() + further
    torch.cuda.set_per_process_memory_fraction(allowed / total)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
