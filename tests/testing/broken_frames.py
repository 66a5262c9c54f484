"""Samplers of frames that break their laws."""

import torch
from torch import Tensor

from zoo import GenerationOutput
from zoo_ctc.ctc_greedy import CtcGreedy


class MergesAfterBlanks(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        read = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        rows = [row[row != pad].unique_consecutive() for row in read.tokens[:, 0]]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
        return GenerationOutput(tokens[:, None], read.scores)


class ReadsPaddingFrames(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        return super().decode_frames(logprobs, mask | True, blank=blank, pad=pad)


class DuplicateHypotheses(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        read = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        return GenerationOutput(read.tokens.repeat(1, 2, 1), read.scores.repeat(1, 2))


class KeepsBlanks(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        read = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        return GenerationOutput(
            torch.nn.functional.pad(read.tokens, (1, 0), value=blank), read.scores
        )


class OverestimatesScores(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        read = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        return GenerationOutput(read.tokens, read.scores / 9)


class WorstFirst(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        read = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        worse = torch.cat([read.scores - 1, read.scores], dim=1)
        return GenerationOutput(
            torch.cat([torch.full_like(read.tokens, pad), read.tokens], dim=1), worse
        )


# (law, broken, sound)
BROKEN = [
    ("certain-path", MergesAfterBlanks, CtcGreedy),
    ("padding-frames", ReadsPaddingFrames, CtcGreedy),
    ("valid-labels", DuplicateHypotheses, CtcGreedy),
    ("valid-labels", KeepsBlanks, CtcGreedy),
    ("score-bounds", OverestimatesScores, CtcGreedy),
    ("score-bounds", WorstFirst, CtcGreedy),
]
