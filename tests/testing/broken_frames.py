"""Samplers of frames that break their laws."""

import torch
from torch import Tensor

from zoo import Decoded
from zoo_ctc.ctc_greedy import CtcGreedy


class MergesAfterTheBlanks(CtcGreedy):
    def read(self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int) -> Decoded:
        read = super().read(logprobs, mask, blank=blank, pad=pad)
        rows = [row[row != pad].unique_consecutive() for row in read.tokens[:, 0]]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
        return Decoded(tokens[:, None], read.scores)


class ReadsPaddingFrames(CtcGreedy):
    def read(self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int) -> Decoded:
        return super().read(logprobs, mask | True, blank=blank, pad=pad)


class SaysEverythingTwice(CtcGreedy):
    def read(self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int) -> Decoded:
        read = super().read(logprobs, mask, blank=blank, pad=pad)
        return Decoded(read.tokens.repeat(1, 2, 1), read.scores.repeat(1, 2))


class SpeaksTheBlanks(CtcGreedy):
    def read(self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int) -> Decoded:
        read = super().read(logprobs, mask, blank=blank, pad=pad)
        return Decoded(torch.nn.functional.pad(read.tokens, (1, 0), value=blank), read.scores)


class SurerThanItMayBe(CtcGreedy):
    def read(self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int) -> Decoded:
        read = super().read(logprobs, mask, blank=blank, pad=pad)
        return Decoded(read.tokens, read.scores / 9)


class WorstFirst(CtcGreedy):
    def read(self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int) -> Decoded:
        read = super().read(logprobs, mask, blank=blank, pad=pad)
        worse = torch.cat([read.scores - 1, read.scores], dim=1)
        return Decoded(torch.cat([torch.full_like(read.tokens, pad), read.tokens], dim=1), worse)


# (law, broken, sound)
BROKEN = [
    ("certain-path", MergesAfterTheBlanks, CtcGreedy),
    ("padding-frames", ReadsPaddingFrames, CtcGreedy),
    ("labels-alone", SaysEverythingTwice, CtcGreedy),
    ("labels-alone", SpeaksTheBlanks, CtcGreedy),
    ("honest-scores", SurerThanItMayBe, CtcGreedy),
    ("honest-scores", WorstFirst, CtcGreedy),
]
