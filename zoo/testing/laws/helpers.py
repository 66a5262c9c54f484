"""Random inputs and comparisons for laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from zoo.interfaces import FrameSampler, GenerationOutput, Memory, Model, Objective
from zoo.spec.composition import compose
from zoo.testing.configuration import Configuration


def randn(*shape: int, seed: int = 0) -> Tensor:
    """Return standard normal values in float64; a seed gives the same values on every device."""
    generator = torch.Generator("cpu").manual_seed(seed)
    values = torch.randn(*shape, generator=generator, dtype=torch.float64, device="cpu")
    return values.to(torch.empty(0).device)


class FiveClasses:
    """The classes of the examples of `Objective.examples`, and targets to fit an objective to."""

    names: ClassVar[Sequence[str]] = ("0", "1", "2", "3", "4")

    def ids(self) -> Iterator[int]:
        return iter((0, 0, 0, 1, 2, 3, 4, 4))


def build_objective(config: Configuration) -> Objective:
    """Return an objective, fitted to targets as before a training."""
    objective: Objective = config.build()
    params = objective.fit(FiveClasses())
    if params:
        fitted = Configuration(config.cls, {**config.params, **params}, config.overrides)
        objective = fitted.build()
    return objective


def make_generator(seed: int) -> torch.Generator:
    """Return a seeded generator on the default device."""
    return torch.Generator(torch.empty(0).device).manual_seed(seed)


def length_mask(lengths: Sequence[int], longest: int | None = None) -> Tensor:
    """Return a mask [B, S] of sequences with these lengths."""
    return torch.arange(longest or max(lengths)) < torch.tensor(lengths)[:, None]


def with_impossible_tokens(logprobs: Tensor) -> tuple[Tensor, Tensor]:
    """Return logprobs [..., V] with a token of probability 0 after each but the first, and the
    new token IDs [V] of the others."""
    V = logprobs.shape[-1]
    token_ids = (torch.arange(V) * 2 - 1).clamp(min=0)
    extended = logprobs.new_full((*logprobs.shape[:-1], 2 * V), float("-inf"))
    extended[..., token_ids] = logprobs
    return extended, token_ids


def assert_close(actual: Tensor, expected: Tensor, what: str, tolerance: float = 1e-9) -> None:
    """Raise AssertionError unless the tensors agree within the tolerance and have no NaN."""
    assert actual.shape == expected.shape, (
        f"{what}: {list(actual.shape)}, not {list(expected.shape)}"
    )
    assert not actual.isnan().any(), f"{what}: contains NaN"
    if actual.numel():
        error = (actual - expected).abs().nan_to_num(nan=0.0, posinf=float("inf")).max().item()
        assert error <= tolerance, f"{what}: differs by {error:.3g}"


def assert_equal(actual: Tensor, expected: Tensor, what: str) -> None:
    """Raise AssertionError unless the tensors are bitwise equal."""
    assert torch.equal(actual, expected), f"{what} changed"


def random_memory(
    memory_dim: int, summary_dim: int, lengths: Sequence[int] = (4, 2, 3), *, seed: int = 0
) -> Memory:
    """Return a memory with random states, source tokens 1 to 6 and padding."""
    mask = length_mask(lengths)
    B, S = mask.shape
    states = randn(B, S, memory_dim, seed=seed) * mask[..., None]
    tokens = (1 + torch.arange(B * S).view(B, S) * 5 % 6) * mask
    return Memory(states, mask, randn(B, summary_dim, seed=seed + 1), tokens=tokens)


def compose_model(config: Configuration) -> Model:
    """Return the configured model in float32, in evaluation mode."""
    spec = {"zoo": 1, "name": "under-test", "model": config.data}
    return compose(spec, registry=config.registry).eval()


def example_batch(model: Model, batch: int = 3, length: int = 5) -> dict[str, Tensor]:
    """Return the example of a model, the same in each call."""
    return model.example(batch, length, torch.Generator().manual_seed(0))


class BestLabels(FrameSampler):
    """Returns the most probable label of each frame, other than blank and padding."""

    name: ClassVar[str] = "best-labels"

    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        ids = torch.arange(logprobs.shape[-1], device=logprobs.device)
        labels = logprobs.masked_fill((ids == blank) | (ids == pad), float("-inf"))
        scores, tokens = labels.max(dim=-1)  # [B, T]
        return GenerationOutput(
            tokens.masked_fill(~mask, pad)[:, None],
            scores.masked_fill(~mask, 0.0).sum(dim=1, keepdim=True),
        )
