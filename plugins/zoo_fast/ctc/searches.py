"""Accelerations of CTC prefix beam search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import GenerationOutput
from zoo.plugin import Acceleration, Call, Declined
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam
from zoo_fast.ctc.array_search import search_arrays
from zoo_fast.ctc.batched_search import search_batch


class CtcBeamGraphed(Acceleration):
    """CTC prefix beam search of a batch on a GPU, in tensors of fixed size and CUDA graphs."""

    name: ClassVar[str] = "ctc-beam-graphed"
    serves: ClassVar[type[CtcPrefixBeam]] = CtcPrefixBeam

    def why_not(self, target: CtcPrefixBeam, device: torch.device) -> str | None:
        return None if device.type == "cuda" else f"the device is '{device.type}', not 'cuda'"

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        yield from beam_cases(dtype)

    def tensors(self, output: GenerationOutput) -> list[Tensor]:
        return [output.tokens, output.scores]

    def decode_frames(
        self, target: CtcPrefixBeam, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput | Declined:
        if target.lm is not None:
            return Declined("the language model is scored on the CPU")
        labels, label_mask, scores = search_batch(
            logprobs.double(),
            mask,
            blank=blank,
            width=target.width,
            prune=target.config.prune,
            n_best=target.n_best,
        )
        tokens = labels.masked_fill(~label_mask, pad)
        if not tokens.shape[-1]:
            tokens = F.pad(tokens, (0, 1), value=pad)
        return GenerationOutput(tokens, scores.to(logprobs))


class CtcBeamArrays(Acceleration):
    """CTC prefix beam search of a batch on the CPU, vectorised over prefixes and labels."""

    name: ClassVar[str] = "ctc-beam-arrays"
    serves: ClassVar[type[CtcPrefixBeam]] = CtcPrefixBeam
    order: ClassVar[int] = 1
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.float64)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        yield from beam_cases(dtype)

    def tensors(self, output: Any) -> list[Tensor]:
        return [output.tokens, output.scores]

    def decode_frames(
        self, target: CtcPrefixBeam, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        results = search_arrays(
            logprobs.double().cpu().numpy(),
            blank,
            target.config,
            target.lm,
            lengths=mask.sum(dim=1).tolist(),
            n_best=target.n_best,
        )
        return target.pad_results(results, logprobs, pad)


def beam_cases(dtype: torch.dtype) -> Iterator[Call]:
    """Yield calls with padding, items without frames, wide and narrow beams, and pruning."""
    device = torch.empty(0).device
    for lengths, V, width, blank, prune in (
        ((20, 0, 7), 5, 7, 0, 0.0),
        ((5, 3), 3, 60, 1, 0.0),
        ((17,), 20, 10, 19, 0.0),
        ((12, 9), 12, 20, 0, 0.05),
        ((1,), 3, 1, 0, 0.0),
    ):
        generator = torch.Generator("cpu").manual_seed(V + width)
        shape = (len(lengths), max(lengths), V)
        logits = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
        logprobs = logits.log_softmax(dim=-1).to(device, dtype)
        mask = (
            torch.arange(shape[1], device="cpu") < torch.tensor(lengths, device="cpu")[:, None]
        ).to(device)
        target = CtcPrefixBeam(width=width, n_best=min(width, 5), prune=prune)
        yield Call(target, (logprobs, mask), {"blank": blank, "pad": V}, "decode_frames")
