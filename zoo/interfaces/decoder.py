"""Interface of decoders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component
from zoo.interfaces.data import Memory


@dataclass(frozen=True)
class State:
    """The state of a decoder between steps; every tensor has the batch first.

    ``per_hypothesis`` changes at each step and is reordered with the hypotheses. ``per_source``
    depends on the source only, so reordering the hypotheses of one source does not copy it.
    """

    per_hypothesis: Mapping[str, Tensor]
    per_source: Mapping[str, Tensor] = field(default_factory=dict)

    def updated(self, per_hypothesis: Mapping[str, Tensor]) -> State:
        """Return a state with new per-hypothesis tensors and the same source."""
        return replace(self, per_hypothesis=per_hypothesis)

    def reorder(self, parents: Tensor) -> State:
        """Return the state whose row i is row parents[i] of this state.

        parents [B] must stay within the same source.
        """
        return self.updated(_select_rows(self.per_hypothesis, parents))

    def repeat(self, times: int) -> State:
        """Repeat each row ``times`` times consecutively, for several hypotheses per source."""
        return replace(
            self,
            per_hypothesis=_repeat_rows(self.per_hypothesis, times),
            per_source=_repeat_rows(self.per_source, times),
        )


def _select_rows(tensors: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    return {name: tensor.index_select(0, rows) for name, tensor in tensors.items()}


def _repeat_rows(tensors: Mapping[str, Tensor], times: int) -> dict[str, Tensor]:
    return {name: tensor.repeat_interleave(times, dim=0) for name, tensor in tensors.items()}


class Decoder(Component, nn.Module, ABC):
    """Computes the logits of the next token from a memory and the previous tokens.

    From the parent: embedding (the built target embedding), memory_dim, summary_dim, carry.

    Laws:
        decoding one step at a time equals the forward pass (teacher forcing); causality: token
        t+1 does not affect the logits at t; a reordered state continues its parent hypothesis;
        several texts in one row, if it supports segments, have the logits of each alone.
    """

    kind: ClassVar[str] = "decoder"
    needs_source_tokens: ClassVar[bool] = False
    """Whether it needs memory.tokens, for example to copy source tokens."""
    supports_segments: ClassVar[bool] = False
    """Whether `forward` takes ``segments`` [B, T], the number of the text of each token, for rows
    with several texts one after the other. The logits are those of each text alone."""
    input_parts: ClassVar[tuple[str, ...]] = ()
    """Names of the modules that precede the first layer; they may be None. Learning rates by depth
    treat them as embeddings."""

    def forward(self, targets: Tensor, memory: Memory) -> Tensor:
        """Compute the logits [B, T, V] of the token that follows each of targets [B, T]."""
        logits, _ = self.step(targets, self.start(memory, steps=targets.shape[1]))
        return logits

    @abstractmethod
    def start(self, memory: Memory, *, steps: int) -> State:
        """Return the state before the first token.

        Args:
            steps: maximum number of tokens that will be decoded.
        """

    def max_steps(self, length: int, steps: int) -> int:
        """Return the largest number of steps, at most ``steps``, of a state whose logits are those
        of a text of ``length`` tokens.

        Texts that become longer are processed again, after `restart`. Decoders whose logits depend
        on the length of the whole text override both.
        """
        return steps

    def restart(self, state: State, *, steps: int) -> State:
        """Return the state before the first token, for the source of another state."""
        raise NotImplementedError(f"{type(self).__name__} must implement restart")

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process the next n tokens [B, n]: return logits [B, n, V] and the updated state."""

    def process_prompt(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process the first n tokens [B, n] after `start`: return the logits [B, 1, V] of the
        token that follows, and the updated state."""
        logits, state = self.step(tokens, state)
        return logits[:, -1:], state
