"""What the benchmarks of the CTC loss have in common.

Notation: B batch size, T frames, U labels, V vocabulary including the blank.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Outputs, accelerate
from zoo_ctc.ctc import Ctc
from zoo_ctc.lattice import build_lattice
from zoo_ctc.likelihood import likelihood
from zoo_lab.bench.benchmark import Benchmark, Bound

Size = Annotated[int, Field(ge=1)]
CHECKED = (4, 200)
"""Number of items and frames of the check; the reference path is slow."""


class LossBenchmark(Benchmark):
    """The objective `ctc` on logits, forward and backward, compared with torch.

    Args:
        batch: number of items, B.
        frames: number of frames, T.
        symbols: vocabulary size including the blank, V.
        labels: number of labels of each item, U, at most half of the frames.
    """

    def __init__(self, *, batch: int, frames: int, symbols: int, labels: int) -> None:
        self.batch = batch
        self.frames = frames
        self.symbols = symbols
        self.labels = min(labels, frames // 2)

    def prepare(self, device: torch.device) -> None:
        shape = (self.batch, self.frames, self.symbols)
        self.logits = torch.randn(shape, device=device).requires_grad_()
        self.targets = torch.randint(1, self.symbols, (self.batch, self.labels), device=device)
        self.outputs = Outputs(
            self.logits,
            self.targets,
            torch.ones(shape[:2], dtype=torch.bool, device=device),
            target_mask=torch.ones_like(self.targets, dtype=torch.bool),
        )
        self.objective = accelerate(Ctc())

    def run(self) -> Any:
        return self.measured(lambda: self.objective(self.outputs))

    def measured(self, loss: Callable[[], Tensor]) -> Tensor:
        """Return the gradient of the loss."""
        (gradient,) = torch.autograd.grad(loss(), self.logits)
        return gradient

    def check(self) -> None:
        """Compare values and gradients of ragged items with the reference path in float64.

        Tolerances, relative in the Euclidean norm: 1e-5 of the values; 1e-4 of the gradient in
        float32, 1e-2 in bfloat16.
        """
        B, T = min(self.batch, CHECKED[0]), min(self.frames, CHECKED[1])
        device, labels = self.logits.device, self.targets[:B, : T // 2]
        mask = torch.arange(T, device=device) < torch.randint(1, T + 1, (B, 1), device=device)
        counts = torch.randint(0, labels.shape[1] + 1, (B, 1), device=device)
        target_mask = torch.arange(labels.shape[1], device=device) < counts
        lattice = build_lattice(labels, target_mask, blank=0, vocab=self.symbols)
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 1e-2)):
            logits = torch.randn(B, T, self.symbols, device=device).to(dtype).requires_grad_()
            exact = logits.detach().double().requires_grad_()
            found = self.objective.log_likelihood(logits, mask, labels, target_mask)
            expected = likelihood(exact.log_softmax(dim=-1), mask, lattice)
            possible = expected.isfinite()
            assert torch.equal(found.isfinite(), possible), "items without a path differ"
            pairs = [(found[possible].detach(), expected[possible].detach(), 1e-5)]
            (gradient,) = torch.autograd.grad(found[possible].sum(), logits)
            (exact_gradient,) = torch.autograd.grad(expected[possible].sum(), exact)
            pairs.append((gradient, exact_gradient, tolerance))
            for value, reference, max_error in pairs:
                error = float((value.double() - reference).norm())
                assert error <= max_error * float(reference.norm()), (
                    f"the error in {dtype} is {error}"
                )

    def torch_loss(self, logits: Tensor, *, dtype: torch.dtype = torch.long) -> Tensor:
        """Return the loss of torch; with int32 labels on a GPU, it is that of cuDNN."""
        lengths = torch.full((self.batch,), self.frames, dtype=dtype, device=logits.device)
        counts = torch.full_like(lengths, self.labels)
        targets = self.targets if dtype == torch.long else self.targets.flatten().to(dtype)
        logprobs = logits.log_softmax(dim=-1).transpose(0, 1)
        return F.ctc_loss(logprobs, targets, lengths, counts, reduction="sum") / self.batch

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"torch": lambda: lambda: self.measured(lambda: self.torch_loss(self.logits))}

    def bound(self) -> Bound:
        return Bound(bytes=2 * self.logits.numel() * self.logits.element_size())

    def items(self) -> tuple[int, str]:
        return self.batch * self.frames, "frames"
