"""Frame samplers that violate a law, and the valid one they are based on."""

import torch
from torch import Tensor

from zoo import GenerationOutput
from zoo_ctc.ctc_greedy import CtcGreedy


class MergesAfterBlanks(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        output = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        rows = [row[row != pad].unique_consecutive() for row in output.tokens[:, 0]]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
        return GenerationOutput(tokens[:, None], output.scores)


class ReadsPaddingFrames(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        return super().decode_frames(logprobs, mask | True, blank=blank, pad=pad)


class DuplicateHypotheses(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        output = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        return GenerationOutput(output.tokens.repeat(1, 2, 1), output.scores.repeat(1, 2))


class KeepsBlanks(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        output = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        return GenerationOutput(
            torch.nn.functional.pad(output.tokens, (1, 0), value=blank), output.scores
        )


class OverestimatesScores(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        output = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        return GenerationOutput(output.tokens, output.scores / 9)


class WorstFirst(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        output = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        worse = torch.cat([output.scores - 1, output.scores], dim=1)
        return GenerationOutput(
            torch.cat([torch.full_like(output.tokens, pad), output.tokens], dim=1), worse
        )


class CountsLabels(CtcGreedy):
    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        output = super().decode_frames(logprobs, mask, blank=blank, pad=pad)
        return GenerationOutput(output.tokens, output.scores - logprobs.shape[-1])


# (law, broken component, valid component)
BROKEN = [
    ("certain-path", MergesAfterBlanks, CtcGreedy),
    ("padding-frames", ReadsPaddingFrames, CtcGreedy),
    ("impossible-labels", CountsLabels, CtcGreedy),
    ("valid-labels", DuplicateHypotheses, CtcGreedy),
    ("valid-labels", KeepsBlanks, CtcGreedy),
    ("score-bounds", OverestimatesScores, CtcGreedy),
    ("score-bounds", WorstFirst, CtcGreedy),
]
