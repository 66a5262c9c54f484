"""What the benchmarks of CTC prefix beam search have in common.

Notation: B batch size, T frames, V vocabulary including the blank.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

from zoo import accelerate
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam
from zoo_lab.bench.benchmark import Benchmark

Size = Annotated[int, Field(ge=1)]


class BeamBenchmark(Benchmark):
    """The sampler `ctc-prefix-beam` on nearly uniform frames, compared with other decoders.

    Args:
        batch: number of items, B.
        frames: number of frames, T.
        symbols: vocabulary size including the blank, V.
        width: beam width.
    """

    packages: ClassVar[Sequence[str]] = ("fast-ctc-decode",)

    def __init__(self, *, batch: int, frames: int, symbols: int, width: int) -> None:
        self.batch = batch
        self.frames = frames
        self.symbols = symbols
        self.width = width

    def prepare(self, device: torch.device) -> None:
        logits = 0.01 * torch.randn(self.batch, self.frames, self.symbols, device=device)
        self.logprobs = logits.log_softmax(dim=-1)
        self.mask = torch.ones(logits.shape[:2], dtype=torch.bool, device=device)
        self.sampler = accelerate(CtcPrefixBeam(width=self.width, n_best=1))

    @torch.no_grad()
    def decode(self, device: str | torch.device) -> Any:
        logprobs, mask = self.logprobs.to(device), self.mask.to(device)
        return self.sampler.decode_frames(logprobs, mask, blank=0, pad=0)

    def run(self) -> Any:
        return self.decode(self.logprobs.device)

    def on_cpu(self) -> Callable[[], Any]:
        return lambda: self.decode("cpu")

    def fast_ctc_decode(self) -> Callable[[], Any]:
        decode = importlib.import_module("fast_ctc_decode").beam_search
        # One character for each label; the first one is the blank.
        alphabet = "".join(map(chr, range(0x100, 0x100 + self.symbols)))
        items = self.logprobs.exp().cpu().numpy()
        return lambda: [
            decode(item, alphabet, beam_size=self.width, beam_cut_threshold=0.0) for item in items
        ]

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"fast-ctc-decode": self.fast_ctc_decode}

    def items(self) -> tuple[int, str]:
        return self.batch * self.frames, "frames"
