"""Reference implementations in NumPy, float64, one item at a time."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn


@pytest.fixture(scope="module", autouse=True)
def single_thread() -> Iterator[None]:
    """Run on one thread: for steps this small, more threads are slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def ragged_batch() -> tuple[Tensor, Tensor, list[int]]:
    """Return inputs [4, 5, 3], mask [4, 5] and lengths; one item is empty."""
    lengths = [5, 1, 0, 3]
    inputs = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return inputs, torch.arange(5)[None] < torch.tensor(lengths)[:, None], lengths


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _reference_cell(
    cell: str, x: np.ndarray, state: dict[str, np.ndarray], weights: Sequence[Tensor]
) -> dict[str, np.ndarray]:
    W, U, b, d = (w.detach().numpy() for w in weights)
    h = state["h"]
    H = len(h)

    def from_input(gate: int) -> np.ndarray:
        rows = slice(gate * H, (gate + 1) * H)
        return W[rows] @ x + b[rows]

    def from_state(gate: int, h: np.ndarray) -> np.ndarray:
        rows = slice(gate * H, (gate + 1) * H)
        return U[rows] @ h + d[rows]

    if cell == "rnn":
        return {"h": np.tanh(from_input(0) + from_state(0, h))}
    if cell == "lstm":
        i, f, o = (_sigmoid(from_input(gate) + from_state(gate, h)) for gate in (0, 1, 3))
        c = f * state["c"] + i * np.tanh(from_input(2) + from_state(2, h))
        return {"h": o * np.tanh(c), "c": c}
    r, z = (_sigmoid(from_input(gate) + from_state(gate, h)) for gate in (0, 1))
    if cell == "gru":
        n = np.tanh(from_input(2) + r * from_state(2, h))
    else:
        n = np.tanh(from_input(2) + from_state(2, r * h))
    return {"h": (1 - z) * n + z * h}


def _reference_stack(
    cell: str, x: np.ndarray, state: dict[str, np.ndarray], cells: Sequence[nn.Module]
) -> dict[str, np.ndarray]:
    updated = []
    for layer, module in enumerate(cells):
        weights = [getattr(module, n) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        inputs = updated[-1]["h"] if updated else x
        layer_state = {key: value[layer] for key, value in state.items()}
        updated.append(_reference_cell(cell, inputs, layer_state, weights))
    return {key: np.stack([one[key] for one in updated]) for key in updated[0]}


@pytest.fixture
def reference_cell() -> Callable[..., dict[str, np.ndarray]]:
    """One step of one cell: x [D], state tensors [H] -> state tensors [H]."""
    return _reference_cell


@pytest.fixture
def reference_stack() -> Callable[..., dict[str, np.ndarray]]:
    """One step of a decoder's cells: x [D], state tensors [L, H] -> state tensors [L, H]."""
    return _reference_stack
