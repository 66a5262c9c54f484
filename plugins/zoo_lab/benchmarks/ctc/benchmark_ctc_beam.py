"""Benchmark 'ctc-beam'."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch

from zoo_lab.benchmarks.ctc.beam_benchmark import BeamBenchmark, Size


class CtcBeamBenchmark(BeamBenchmark):
    """CTC prefix beam search of a batch on a GPU, compared with searches on the CPU.

    Args:
        batch: number of items, B.
        frames: number of frames, T.
        symbols: vocabulary size including the blank, V.
        width: beam width.
    """

    name: ClassVar[str] = "ctc-beam"
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"batch": (1, 8, 64, 512)}
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 2, "frames": 4, "symbols": 4, "width": 5}

    def __init__(
        self, *, batch: Size = 32, frames: Size = 200, symbols: Size = 64, width: Size = 100
    ) -> None:
        super().__init__(batch=batch, frames=frames, symbols=symbols, width=width)

    @torch.no_grad()
    def check(self) -> None:
        """Compare the hypotheses with those of the search on the CPU; scores to 1e-4."""
        logits = torch.randn(2, min(self.frames, 50), self.symbols, device=self.mask.device)
        logprobs, mask = logits.log_softmax(dim=-1), torch.ones_like(logits[..., 0]).bool()
        mask[0, -1] = False
        found = self.sampler.decode_frames(logprobs, mask, blank=0, pad=0)
        expected = self.sampler.decode_frames(logprobs.cpu(), mask.cpu(), blank=0, pad=0)
        assert torch.equal(found.tokens.cpu(), expected.tokens), "the hypotheses differ"
        torch.testing.assert_close(found.scores.cpu(), expected.scores, atol=1e-4, rtol=0)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {**super().peers(), "ctc-prefix-beam on the CPU": self.on_cpu}
