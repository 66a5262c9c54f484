"""The states of the random generators of a process, as tensors."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

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
    numpy: Any = np.random.get_state(legacy=True)
    _, keys, position, has_gauss, gauss = numpy
    version, internal, python_gauss = random.getstate()
    has_python_gauss = python_gauss is not None
    state = {
        "torch": torch.get_rng_state(),
        "python": _on_cpu([version, *internal, has_python_gauss], torch.int64),
        "python_gauss": _on_cpu(python_gauss or 0.0, torch.float64),
        "numpy": _on_cpu([*keys.tolist(), position, has_gauss], torch.int64),
        "numpy_gauss": _on_cpu(gauss, torch.float64),
    }
    if _uses_cuda():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: Mapping[str, Tensor]) -> None:
    """Set the states returned by `get_random_state`.

    Raises:
        ValueError, TypeError, RuntimeError, OverflowError: if a state is not valid.
    """
    torch.set_rng_state(state["torch"])
    if "cuda" in state and _uses_cuda():
        torch.cuda.set_rng_state(state["cuda"])
    version, *internal, has_python_gauss = state["python"].tolist()
    gauss = state["python_gauss"].item() if has_python_gauss else None
    random.setstate((version, tuple(internal), gauss))
    *keys, position, has_gauss = state["numpy"].tolist()
    if not 0 <= position <= len(keys):  # NumPy would read foreign memory
        raise ValueError(f"the position of NumPy's generator is {position}")
    legacy = ("MT19937", np.array(keys, dtype=np.uint32), position, has_gauss)
    np.random.set_state((*legacy, state["numpy_gauss"].item()))


def _on_cpu(values: Any, dtype: torch.dtype) -> Tensor:
    return torch.tensor(values, dtype=dtype, device="cpu")


def _uses_cuda() -> bool:
    initialised: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return initialised
