"""The states of the random generators of a process, as tensors."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor


def seed_all(seed: int) -> None:
    """Set the seeds of torch on all devices, of Python and of NumPy."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def get_random_state() -> dict[str, Tensor]:
    """Return the states of the generators of torch, of the current GPU, of Python and of NumPy."""
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # type: ignore[misc]
    version, internal, python_gauss = random.getstate()
    has_python_gauss = python_gauss is not None
    state = {
        "torch": torch.get_rng_state(),
        "python": torch.tensor([version, *internal, has_python_gauss]),
        "python_gauss": torch.tensor(python_gauss or 0.0, dtype=torch.float64),
        "numpy": torch.tensor([*keys.tolist(), position, has_gauss]),
        "numpy_gauss": torch.tensor(gauss, dtype=torch.float64),
    }
    if torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: Mapping[str, Tensor]) -> None:
    """Set the states returned by `get_random_state`."""
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_initialized():
        torch.cuda.set_rng_state(state["cuda"])
    version, *internal, has_python_gauss = state["python"].tolist()
    gauss = state["python_gauss"].item() if has_python_gauss else None
    random.setstate((version, tuple(internal), gauss))
    *keys, position, has_gauss = state["numpy"].tolist()
    legacy = ("MT19937", np.array(keys, dtype=np.uint32), position, has_gauss)
    np.random.set_state((*legacy, state["numpy_gauss"].item()))


@contextlib.contextmanager
def separate_random_state(seed: int) -> Iterator[None]:
    """Use generators with another seed inside the block; the states are restored at the end."""
    state = get_random_state()
    seed_all(seed)
    try:
        yield
    finally:
        set_random_state(state)
