"""Benchmark 'ctc-beam-cpu'."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from zoo_ctc.batched_search import search_batch
from zoo_ctc.prefix_search import search
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

    def check(self) -> None:
        """Compare all hypotheses with those of the batched search; scores to 1e-9."""
        logprobs = torch.randn(1, min(self.frames, 30), self.symbols).double().log_softmax(dim=-1)
        labels, mask, scores = search_batch(
            logprobs,
            torch.ones(logprobs.shape[:2], dtype=torch.bool),
            blank=0,
            width=self.width,
            prune=0.0,
            n_best=self.width,
        )
        (results,) = search(logprobs.numpy(), 0, self.sampler.config, None)
        for i, (expected, score) in enumerate(results):
            assert tuple(labels[0, i][mask[0, i]].tolist()) == expected, "the hypotheses differ"
            assert abs(float(scores[0, i]) - score) < 1e-9, "the scores differ"
