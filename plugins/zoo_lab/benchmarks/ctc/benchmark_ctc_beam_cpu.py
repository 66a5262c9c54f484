"""Benchmark 'ctc-beam-cpu'."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from zoo import accelerate
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam
from zoo_lab.benchmarks.ctc.beam_benchmark import BeamBenchmark, Size


class CtcBeamCpuBenchmark(BeamBenchmark):
    """CTC prefix beam search on the CPU, compared with fast-ctc-decode.

    Args:
        batch: number of items, B.
        frames: number of frames, T.
        symbols: vocabulary size including the blank, V.
        width: beam width.
    """

    name: ClassVar[str] = "ctc-beam-cpu"
    device_type: ClassVar[str] = "cpu"
    target: ClassVar[float | None] = 4.0
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"symbols": (5, 32, 64, 128), "width": (10, 100)}
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 2, "frames": 4, "symbols": 4, "width": 5}

    def __init__(
        self, *, batch: Size = 4, frames: Size = 200, symbols: Size = 64, width: Size = 100
    ) -> None:
        super().__init__(batch=batch, frames=frames, symbols=symbols, width=width)

    @torch.no_grad()
    def check(self) -> None:
        """Compare all hypotheses with those of the reference path; scores to 1e-9."""
        logprobs = torch.randn(1, min(self.frames, 30), self.symbols).double().log_softmax(dim=-1)
        mask = torch.ones(logprobs.shape[:2], dtype=torch.bool)
        sampler = CtcPrefixBeam(width=self.width)
        expected = sampler.decode_frames(logprobs, mask, blank=0, pad=0)
        found = accelerate(sampler).decode_frames(logprobs, mask, blank=0, pad=0)
        assert torch.equal(found.tokens, expected.tokens), "the hypotheses differ"
        torch.testing.assert_close(found.scores, expected.scores, atol=1e-9, rtol=0)
