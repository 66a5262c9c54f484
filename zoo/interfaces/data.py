"""Data types that components exchange.

Notation: B batch, T target steps, S source steps, D width, H heads, L layers, V vocabulary.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, TypeVar, overload

import torch
from torch import Tensor
from torch.utils._pytree import register_dataclass

from zoo.errors import ZooError

_P = ParamSpec("_P")
_T = TypeVar("_T")

Batch = Mapping[str, Tensor]
"""The input of a model: tensors by name, batch first."""


@overload
def full_precision(value: Tensor) -> Tensor: ...


@overload
def full_precision(value: Callable[_P, _T]) -> Callable[_P, _T]: ...


def full_precision(value: Any) -> Any:
    """Convert half precision and integers to float32; return float32 and float64 unchanged.

    As a decorator of a function: it computes in float32 or higher. Its half-precision arguments are
    converted, and autocast is disabled, which would compute matrix products in half precision.
    """
    if isinstance(value, Tensor):
        return value.to(torch.promote_types(value.dtype, torch.float32))

    @functools.wraps(value)
    def function(*args: Any, **kwargs: Any) -> Any:
        args = tuple(_raise_precision(argument) for argument in args)
        kwargs = {name: _raise_precision(argument) for name, argument in kwargs.items()}
        tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, Tensor)]
        device = tensors[0].device.type
        with torch.autocast("cpu" if device == "meta" else device, enabled=False):
            return value(*args, **kwargs)

    return function


def _raise_precision(value: Any) -> Any:
    is_float = isinstance(value, Tensor) and value.is_floating_point()
    return full_precision(value) if is_float else value


@dataclass(frozen=True)
class Memory:
    """The output of an encoder, which a decoder attends to.

    Shapes:
        states [B, S, D]; mask [B, S], True where a state is not padding; summary [B, Ds], one
        vector for the whole input; carry: final state of a recurrent encoder, each [B, L, D];
        tokens [B, S], the source token ID of each state, None if the source is not tokens.
    """

    states: Tensor
    mask: Tensor
    summary: Tensor
    carry: Mapping[str, Tensor] = field(default_factory=dict)
    tokens: Tensor | None = None

    @classmethod
    def empty(
        cls,
        batch: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Memory:
        """Return a memory without states, for models without a source."""
        summary = torch.empty(batch, 0, device=device, dtype=dtype)
        states = torch.empty(batch, 0, 0, device=device, dtype=dtype)
        return cls(states, torch.empty(batch, 0, device=device, dtype=torch.bool), summary)


@dataclass(frozen=True)
class Mask:
    """An attention mask stored as separate conditions; `dense` combines them into one tensor.

    Shapes:
        keys [B, S], True where a key is not padding; pairs [B, T, S], True where a query attends
        to a key; causal: query t attends to keys 0 to offset + t; window: query t attends to keys
        at distances from offset + t below it; bias [H, T, S] or [B, H, T, S], added to the scores.
    """

    keys: Tensor | None = None
    causal: bool = False
    offset: int | Tensor = 0
    pairs: Tensor | None = None
    bias: Tensor | None = None
    window: int | None = None
    _kept: dict[tuple[int, int, torch.device], Tensor | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _windows: dict[int, Mask] = field(init=False, repr=False, compare=False, default_factory=dict)

    def sees_all_keys(self, S: int) -> bool:
        """Whether the causal condition, if set, masks none of S keys; False if not known."""
        return not self.causal or (isinstance(self.offset, int) and self.offset + 1 >= S)

    def window_masks(self, T: int, S: int) -> bool:
        """Whether the window masks any of S keys for any of T queries; True if not known.

        Queries with an offset that is not known are at positions of keys.
        """
        if self.window is None:
            return False
        positions = self.offset + T if isinstance(self.offset, int) else 0
        return max(positions, S) > self.window

    def with_window(self, window: int) -> Mask:
        """Return the mask with this window; the same object for all layers that use it."""
        if torch.compiler.is_compiling():
            return replace(self, window=window)
        if window not in self._windows:
            self._windows[window] = replace(self, window=window)
        return self._windows[window]

    def dense(self, T: int, S: int, device: torch.device) -> Tensor | None:
        """Return a boolean tensor broadcastable to [B, T, S], or None if no key is masked.

        It is computed once for all layers that use this mask with the same lengths; each time in
        compiled graphs.
        """
        if torch.compiler.is_compiling():
            return self._compute_dense(T, S, device)
        key = (T, S, device)
        if key not in self._kept:
            self._kept[key] = self._compute_dense(T, S, device)
        return self._kept[key]

    def _compute_dense(self, T: int, S: int, device: torch.device) -> Tensor | None:
        parts = []
        if self.keys is not None:
            parts.append(self.keys[:, None, :])  # [B, 1, S]
        if self.pairs is not None:
            parts.append(self.pairs)  # [B, T, S]
        if not self.sees_all_keys(S):
            last = torch.arange(T, device=device)[:, None] + self.offset
            parts.append((torch.arange(S, device=device) <= last)[None])  # [1, T, S]
        if self.window_masks(T, S):
            assert self.window is not None
            at = torch.arange(T, device=device)[:, None] + self.offset
            distance = (at - torch.arange(S, device=device)).abs()
            parts.append((distance < self.window)[None])  # [1, T, S]
        if not parts:
            return None
        return functools.reduce(torch.logical_and, parts)


@dataclass(frozen=True)
class AlignmentContext:
    """Inputs of an alignment besides the scores.

    Shapes:
        query [..., T, Dq]; offset: number of previous queries, an int or [B]; previous [..., S]:
        weights of the previous query, None at the first.
    """

    query: Tensor
    offset: int | Tensor = 0
    previous: Tensor | None = None

    def steps(self) -> Tensor:
        """Return the index of each query, broadcastable to scores [B, H, T, S]."""
        index = torch.arange(self.query.shape[-2], device=self.query.device)
        offset = torch.as_tensor(self.offset, device=self.query.device)
        return (offset.reshape(-1, 1) + index)[:, None, :, None]  # [B or 1, 1, T, 1]


@dataclass(frozen=True)
class Samples:
    """Log-probability of sampled positions and entropy of their distribution, both differentiable.

    Shapes:
        logprob, entropy: [B, H, T] from an attention; [B, T] from a model, summed over its heads
        and attentions.
    """

    logprob: Tensor
    entropy: Tensor


@dataclass(frozen=True)
class Outputs:
    """The outputs of a model and their targets.

    Shapes:
        logits [B, T, V]; targets [B, T], or [B, T, V] for multi-label targets; mask [B, T], True
        where the loss is computed; samples [B, T], None without sampled positions; target_mask
        [B, U], only if targets [B, U] are not aligned with the logits; extras: further tensors for
        specific objectives, batch first; auxiliary: outputs of further heads for the same batch.
    """

    logits: Tensor
    targets: Tensor
    mask: Tensor
    samples: Samples | None = None
    target_mask: Tensor | None = None
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    auxiliary: Mapping[str, Outputs] = field(default_factory=dict)

    def get_extra(self, name: str, required_by: str) -> Tensor:
        """Return a tensor from extras; raise ZooError if it is missing."""
        if name not in self.extras:
            raise ZooError(
                f"objective '{required_by}' requires '{name}' in the model's extras, which contain "
                f"{', '.join(sorted(self.extras)) or 'nothing'}; use a model that outputs '{name}'"
            )
        return self.extras[name]

    def without_targets(self) -> Outputs:
        """Return the outputs of a batch that had no targets: targets [B, 0], no target_mask."""
        return replace(self, targets=self.targets[:, :0], target_mask=None)

    @property
    def has_targets(self) -> bool:
        """Whether the batch had targets."""
        is_empty = self.target_mask is None and self.targets.shape[1:2] == (0,)
        return not is_empty or self.logits.shape[1:2] == (0,)

    def differentiable(self) -> Iterator[Tensor]:
        """Yield every tensor that an objective can differentiate."""
        yield self.logits
        if self.samples is not None:
            yield from (self.samples.logprob, self.samples.entropy)
        yield from (tensor for tensor in self.extras.values() if tensor.is_floating_point())
        for part in self.auxiliary.values():
            yield from part.differentiable()


@dataclass(frozen=True)
class Selection:
    """The output of a sampler: W hypotheses per item, each continuing one of the previous W.

    Shapes:
        tokens, parents, scores: [B, W]; parents from 0 to W - 1.
    """

    tokens: Tensor
    parents: Tensor
    scores: Tensor


@dataclass(frozen=True)
class GenerationOutput:
    """Generated hypotheses, best first; rows end with eos, then padding.

    Shapes:
        tokens [B, N, T], without the prompt; scores [B, N], by which the hypotheses are ranked:
        sums of log-probabilities, which beam search may divide by a length penalty; -inf if
        fewer than N hypotheses were found.
    """

    tokens: Tensor
    scores: Tensor

    def best(self) -> list[list[int]]:
        """Return the best hypothesis of each item as a list, including eos and padding."""
        rows: list[list[int]] = self.tokens[:, 0].tolist()
        return rows


# FSDP looks for the tensors of a module's output with pytree; torch 2.11 needs this to find them.
for _output in (Memory, Samples, Outputs):
    register_dataclass(_output)
