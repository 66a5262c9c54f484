"""Accelerations of the likelihood of the CTC loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Call, Declined, full_precision
from zoo_ctc.ctc import Ctc
from zoo_ctc.lattice import build_lattice, validate_labels
from zoo_fast.ctc.scaled_likelihood import scaled_likelihood
from zoo_fast.device.triton_support import why_not_triton, why_not_triton_on

MAX_LABELS = 4095
"""Maximum number of labels of the Triton kernel, which holds the states of an item in registers."""


class CtcTriton(Acceleration):
    """Forward-backward algorithm of the CTC loss in Triton kernels, from logits to gradients."""

    name: ClassVar[str] = "ctc-triton"
    serves: ClassVar[type[Ctc]] = Ctc
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.bfloat16)
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: Ctc, device: torch.device) -> str | None:
        # The kernel sums the posteriors of equal labels in no fixed order.
        if torch.are_deterministic_algorithms_enabled():
            return "deterministic algorithms are enabled"
        return why_not_triton_on(device.type)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        yield from likelihood_cases(dtype)

    def log_likelihood(
        self, target: Ctc, logits: Tensor, mask: Tensor, targets: Tensor, target_mask: Tensor
    ) -> Tensor | Declined:
        reason = why_not_triton(logits, targets)
        if reason is not None:
            return Declined(reason)
        if not logits.numel():
            return Declined("there are no frames")
        if targets.shape[1] > MAX_LABELS:
            return Declined(f"there are more than {MAX_LABELS} labels")
        from zoo_fast.ctc.kernels.fused_likelihood import fused_likelihood

        validate_labels(targets, target_mask, blank=target.blank, vocab=logits.shape[-1])
        return fused_likelihood(logits, mask, targets, target_mask, blank=target.blank)


class CtcScaled(Acceleration):
    """Forward-backward algorithm of the CTC loss on the CPU, vectorised and without logarithms."""

    name: ClassVar[str] = "ctc-scaled"
    serves: ClassVar[type[Ctc]] = Ctc
    order: ClassVar[int] = 1
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.float64)
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: Ctc, device: torch.device) -> str | None:
        return None if device.type == "cpu" else f"the device is '{device.type}', not 'cpu'"

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        yield from likelihood_cases(dtype)

    def log_likelihood(
        self, target: Ctc, logits: Tensor, mask: Tensor, targets: Tensor, target_mask: Tensor
    ) -> Tensor | Declined:
        # Subclasses, such as tensors without values, have no numpy array.
        if type(logits) is not Tensor or not logits.numel():
            return Declined("there are no values")
        if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            return Declined("a valid frame follows padding")
        lattice = build_lattice(targets, target_mask, blank=target.blank, vocab=logits.shape[-1])
        total = scaled_likelihood(full_precision(logits), mask, lattice)
        return Declined("a label has a very low probability") if total is None else total


def likelihood_cases(dtype: torch.dtype) -> Iterator[Call]:
    """Yield calls with padding, without labels, without a path, and with one frame."""
    device = torch.empty(0).device
    generator = torch.Generator("cpu").manual_seed(0)
    for frames, counts, V, U in (
        ((6, 4, 0), (3, 1, 0), 5, 3),
        ((5, 3), (2, 4), 3, 4),
        ((1,), (1,), 2, 1),
        ((2, 2), (0, 0), 3, 0),
    ):
        B, T = len(frames), max(frames)
        logits = torch.randn(B, T, V, generator=generator, device="cpu")
        labels = torch.randint(1, V, (B, U), generator=generator, device="cpu")
        mask, target_mask = (
            torch.arange(size, device="cpu") < torch.tensor(valid, device="cpu")[:, None]
            for size, valid in ((T, frames), (U, counts))
        )
        tensors = (logits.to(dtype), mask, labels, target_mask)
        arguments = tuple(tensor.to(device) for tensor in tensors)
        yield Call(Ctc(), arguments, method="log_likelihood")
