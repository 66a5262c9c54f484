"""The reversal task: speak the source backwards."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch
from torch import Tensor

from zoo.errors import ZooError

PAD, BOS, EOS, FIRST_SYMBOL = 0, 1, 2, 3
MIN_LENGTH, MAX_LENGTH = 3, 8

Sequence = tuple[int, ...]


@dataclass
class Reversal:
    """Random sequences of symbols; those held out are never among the training batches."""

    vocab: int
    seed: int
    held_out: set[Sequence] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.vocab < FIRST_SYMBOL + 2:
            raise ZooError(
                f"reversal needs a vocabulary of {FIRST_SYMBOL + 2} or more, not {self.vocab}"
            )
        self.rng = random.Random(self.seed)

    def hold_out(self, count: int) -> list[Sequence]:
        """Sequences that training will not see."""
        fresh: list[Sequence] = []
        while len(fresh) < count:
            sequence = self._sample_sequence()
            if sequence not in self.held_out:
                self.held_out.add(sequence)
                fresh.append(sequence)
        return fresh

    def batch(self, size: int) -> dict[str, Tensor]:
        """A batch to train on."""
        drawn: list[Sequence] = []
        while len(drawn) < size:
            sequence = self._sample_sequence()
            if sequence not in self.held_out:
                drawn.append(sequence)
        return collate(drawn)

    def _sample_sequence(self) -> Sequence:
        length = self.rng.randint(MIN_LENGTH, MAX_LENGTH)
        return tuple(self.rng.randrange(FIRST_SYMBOL, self.vocab) for _ in range(length))


def collate(sequences: list[Sequence]) -> dict[str, Tensor]:
    """Sequences and their reversals, padded."""
    return {
        "source": _pad([list(s) for s in sequences]),
        "target": _pad([[BOS, *reversed(s), EOS] for s in sequences]),
    }


def _pad(rows: list[list[int]]) -> Tensor:
    max_length = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (max_length - len(row)) for row in rows])


def strip_eos(tokens: list[int]) -> list[int]:
    """What was said before the end token."""
    return tokens[: tokens.index(EOS)] if EOS in tokens else tokens


def to_letters(tokens: Sequence | list[int]) -> str:
    """Symbols as letters, for people."""
    return " ".join(
        chr(ord("a") + (t - FIRST_SYMBOL) % 26) if t >= FIRST_SYMBOL else "·" for t in tokens
    )
