"""What the laws compare with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from zoo.interfaces import Memory


def randn(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers in float64, the same for one seed on every device."""
    drawn = torch.Generator("cpu").manual_seed(seed)
    numbers = torch.randn(*shape, generator=drawn, dtype=torch.float64, device="cpu")
    return numbers.to(torch.empty(0).device)


def make_generator(seed: int) -> torch.Generator:
    """A generator on the device the laws run on."""
    return torch.Generator(torch.empty(0).device).manual_seed(seed)


def length_mask(lengths: Sequence[int], longest: int | None = None) -> Tensor:
    """A mask [B, S] with the real positions first."""
    return torch.arange(longest or max(lengths)) < torch.tensor(lengths)[:, None]


def assert_close(actual: Tensor, expected: Tensor, what: str, tolerance: float = 1e-9) -> None:
    """Equal within the tolerance, NaN nowhere."""
    assert actual.shape == expected.shape, (
        f"{what}: {list(actual.shape)}, not {list(expected.shape)}"
    )
    assert not actual.isnan().any(), f"{what}: has NaN"
    if actual.numel():
        off = (actual - expected).abs().nan_to_num(nan=0.0, posinf=float("inf")).max().item()
        assert off <= tolerance, f"{what}: off by {off:.3g}"


def assert_equal(actual: Tensor, expected: Tensor, what: str) -> None:
    """Equal to the last bit."""
    assert torch.equal(actual, expected), f"{what} changed"


def random_memory(
    memory_dim: int, summary_dim: int, lengths: Sequence[int] = (4, 2, 3), *, seed: int = 0
) -> Memory:
    """A memory of random states, padded."""
    mask = length_mask(lengths)
    B, S = mask.shape
    states = randn(B, S, memory_dim, seed=seed) * mask[..., None]
    return Memory(states, mask, randn(B, summary_dim, seed=seed + 1))
