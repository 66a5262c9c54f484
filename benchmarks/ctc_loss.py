"""The loss of `ctc` against torch's, forward and backward, on a CUDA device.

Checks the Triton kernel against the reference in float64 first, on random inputs with ragged
frames and labels. Target: at least 2 x torch at half of its memory for T 1000, B 64, 64 symbols,
150 labels.
"""

import itertools

import torch
import torch.nn.functional as F
from gpu import BANDWIDTH, Row, attempt, relative_error, save

from zoo import Outputs
from zoo_ctc.ctc import Ctc
from zoo_ctc.lattice import build_lattice
from zoo_ctc.likelihood import likelihood
from zoo_ctc.log_likelihood import log_likelihood

SIZES = [(1000, 64, 64, 150), (1000, 1, 64, 150), (256, 64, 64, 40), (4097, 8, 64, 500)]
SIZES += [(1000, 512, 64, 150), (200, 32, 5000, 30)]


def make(T: int, B: int, V: int, U: int, dtype: torch.dtype) -> Outputs:
    logits = torch.randn(B, T, V, device="cuda").to(dtype).requires_grad_()
    labels = torch.randint(1, V, (B, U), device="cuda")
    return Outputs(
        logits,
        labels,
        torch.ones(B, T, dtype=torch.bool, device="cuda"),
        target_mask=torch.ones(B, U, dtype=torch.bool, device="cuda"),
    )


def check(rows: list[Row]) -> None:
    sizes = [(1, 1, 2, 1), (33, 3, 7, 5), (100, 4, 65, 33), (400, 2, 4097, 100)]
    for (T, B, V, U), dtype in itertools.product(sizes, (torch.float32, torch.bfloat16)):
        outputs = make(T, B, V, U, dtype)
        frames = torch.randint(T // 2 + 1, T + 1, (B, 1), device="cuda")
        counts = torch.randint(0, min(U, T // 4 + 1) + 1, (B, 1), device="cuda")
        mask = torch.arange(T, device="cuda") < frames
        target_mask = torch.arange(U, device="cuda") < counts
        logits = outputs.logits
        total = log_likelihood(logits, mask, outputs.targets, target_mask, blank=0)
        (gradient,) = torch.autograd.grad(total.nan_to_num(neginf=0).sum(), logits)
        exact = logits.detach().double().requires_grad_()
        lattice = build_lattice(outputs.targets, target_mask, blank=0, vocab=V)
        expected = likelihood(exact.log_softmax(-1), mask, lattice)
        (expected_gradient,) = torch.autograd.grad(expected.nan_to_num(neginf=0).sum(), exact)
        row: Row = {
            "name": "check",
            "T,B,V,U": [T, B, V, U],
            "dtype": str(dtype),
            "value": relative_error(total.nan_to_num(neginf=0), expected.nan_to_num(neginf=0)),
            "gradient": relative_error(gradient, expected_gradient),
        }
        rows.append(row)
        print(row, flush=True)
        assert float(row["value"]) < 1e-5, "the loss differs from the reference"  # type: ignore[arg-type]
        limit = 1e-3 if dtype == torch.float32 else 1e-2
        assert float(row["gradient"]) < limit, "the gradient differs"  # type: ignore[arg-type]


def main() -> None:
    torch.manual_seed(0)
    rows: list[Row] = []
    check(rows)
    for T, B, V, U in SIZES:
        outputs = make(T, B, V, U, torch.float32)
        logits, objective, size = outputs.logits, Ctc(), [T, B, V, U]
        frames = torch.full((B,), T, device="cuda")
        counts = torch.full((B,), U, device="cuda")

        def ours(objective=objective, outputs=outputs, logits=logits):
            objective(outputs).backward()
            logits.grad = None

        def forward(objective=objective, outputs=outputs):
            with torch.no_grad():
                objective(outputs)

        def native(outputs=outputs, logits=logits, frames=frames, counts=counts):
            logprobs = logits.log_softmax(-1).transpose(0, 1)
            F.ctc_loss(logprobs, outputs.targets, frames, counts).backward()
            logits.grad = None

        flat = outputs.targets.flatten().int().cpu()
        int_frames, int_counts = frames.int().cpu(), counts.int().cpu()

        def cudnn(logits=logits, flat=flat, int_frames=int_frames, int_counts=int_counts):
            logprobs = logits.log_softmax(-1).transpose(0, 1)
            F.ctc_loss(logprobs, flat, int_frames, int_counts).backward()
            logits.grad = None

        attempt(rows, "ours", ours, size=size)
        attempt(rows, "ours, forward", forward, size=size)
        attempt(rows, "torch", native, size=size)
        attempt(rows, "torch, cuDNN", cudnn, size=size)
        attempt(rows, "ours again", ours, size=size)
        floor = 2 * logits.numel() * 4 / BANDWIDTH * 1e3
        rows.append({"name": "floor (bytes; T dependent steps are not counted)", "ms": floor})
        print(rows[-1], flush=True)
    save("ctc_loss", rows)


if __name__ == "__main__":
    main()
