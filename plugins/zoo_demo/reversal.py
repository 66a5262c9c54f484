"""Reversal task: the target is the reversed source."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch
from torch import Tensor

from zoo.errors import ZooError

PAD, BOS, EOS, FIRST_LETTER = 0, 1, 2, 3
MIN_LENGTH, MAX_LENGTH = 3, 8

Sequence = tuple[int, ...]


@dataclass
class Reversal:
    """Random sequences of tokens; training batches contain no held-out sequence."""

    vocab: int
    seed: int
    held_out: set[Sequence] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.vocab < FIRST_LETTER + 2:
            raise ZooError(
                f"vocab is {self.vocab}; the reversal task needs at least {FIRST_LETTER + 2} tokens"
            )
        self.rng = random.Random(self.seed)

    def hold_out(self, count: int) -> list[Sequence]:
        """Sample different sequences and exclude them from training batches."""
        letters = self.vocab - FIRST_LETTER
        existing = sum(letters**length for length in range(MIN_LENGTH, MAX_LENGTH + 1))
        needed = len(self.held_out) + count
        if needed >= existing:
            raise ZooError(
                f"vocab is {self.vocab}, for which {existing} sequences exist; the reversal task "
                f"holds out {needed} and needs more for training; use a larger vocab"
            )
        sequences: list[Sequence] = []
        while len(sequences) < count:
            sequence = self._sample_sequence()
            if sequence not in self.held_out:
                self.held_out.add(sequence)
                sequences.append(sequence)
        return sequences

    def batch(self, size: int) -> dict[str, Tensor]:
        """Return a random training batch."""
        sequences: list[Sequence] = []
        while len(sequences) < size:
            sequence = self._sample_sequence()
            if sequence not in self.held_out:
                sequences.append(sequence)
        return collate(sequences)

    def _sample_sequence(self) -> Sequence:
        length = self.rng.randint(MIN_LENGTH, MAX_LENGTH)
        return tuple(self.rng.randrange(FIRST_LETTER, self.vocab) for _ in range(length))


def collate(sequences: list[Sequence]) -> dict[str, Tensor]:
    """Return a padded batch of sequences (source) and their reversals (target)."""
    return {
        "source": _pad([list(s) for s in sequences]),
        "target": _pad([[BOS, *reversed(s), EOS] for s in sequences]),
    }


def _pad(rows: list[list[int]]) -> Tensor:
    max_length = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (max_length - len(row)) for row in rows])


def strip_eos(tokens: list[int]) -> list[int]:
    """Return the tokens before the end token."""
    return tokens[: tokens.index(EOS)] if EOS in tokens else tokens


def to_letters(tokens: Sequence | list[int]) -> str:
    """Format tokens as letters."""
    return " ".join(
        chr(ord("a") + (t - FIRST_LETTER) % 26) if t >= FIRST_LETTER else "·" for t in tokens
    )
