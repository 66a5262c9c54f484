"""Oracles that share no code with what they judge: NumPy, float64, one item at a time."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn


@pytest.fixture(scope="module", autouse=True)
def single_thread() -> Iterator[None]:
    """Steps this small take longer to share out than to do."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _reference_cell(
    cell: str, x: np.ndarray, state: dict[str, np.ndarray], weights: Sequence[Tensor]
) -> dict[str, np.ndarray]:
    W, U, b, d = (w.detach().numpy() for w in weights)
    h = state["h"]
    H = len(h)

    def read(gate: int) -> np.ndarray:
        rows = slice(gate * H, (gate + 1) * H)
        return W[rows] @ x + b[rows]

    def recall(gate: int, past: np.ndarray) -> np.ndarray:
        rows = slice(gate * H, (gate + 1) * H)
        return U[rows] @ past + d[rows]

    if cell == "rnn":
        return {"h": np.tanh(read(0) + recall(0, h))}
    if cell == "lstm":
        i, f, o = (_sigmoid(read(gate) + recall(gate, h)) for gate in (0, 1, 3))
        c = f * state["c"] + i * np.tanh(read(2) + recall(2, h))
        return {"h": o * np.tanh(c), "c": c}
    r, z = (_sigmoid(read(gate) + recall(gate, h)) for gate in (0, 1))
    if cell == "gru":
        n = np.tanh(read(2) + r * recall(2, h))
    else:
        n = np.tanh(read(2) + recall(2, r * h))
    return {"h": (1 - z) * n + z * h}


def _reference_stack(
    cell: str, x: np.ndarray, state: dict[str, np.ndarray], cells: Sequence[nn.Module]
) -> dict[str, np.ndarray]:
    after = []
    for layer, one in enumerate(cells):
        weights = [getattr(one, n) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        below = after[-1]["h"] if after else x
        after.append(_reference_cell(cell, below, {k: v[layer] for k, v in state.items()}, weights))
    return {key: np.stack([one[key] for one in after]) for key in after[0]}


@pytest.fixture
def reference_cell() -> Callable[..., dict[str, np.ndarray]]:
    """One step of one cell: x [D], state tensors [H] -> state tensors [H]."""
    return _reference_cell


@pytest.fixture
def reference_stack() -> Callable[..., dict[str, np.ndarray]]:
    """One step of a decoder's cells: x [D], state tensors [L, H] -> state tensors [L, H]."""
    return _reference_stack
