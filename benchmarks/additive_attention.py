"""Additive attention against eager and compiled PyTorch, forward and backward, on a CUDA device.

Checks scores and gradients of the Triton kernels against float64 first. Target: at least 5 x
torch.compile at 1.2 x of its memory for B 32, T = S = 256, width 512 in bfloat16.
"""

import itertools

import torch
from gpu import Row, attempt, relative_error, save
from torch import Tensor

from zoo.attention.kernels.additive_triton import (
    Blocks,
    smaller_maximum,
    triton_gradients,
    triton_scores,
)
from zoo.plugin import additive_scores

RECIPROCALS = 132 * 16 * 1.7e9  # per second on an H200: 16 per cycle and multiprocessor


def scores(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    result: Tensor = ((a[..., :, None, :] + b[..., None, :, :]).tanh() * v).sum(-1)
    return result


def attend(function, q: Tensor, k: Tensor, values: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(function(q, k, v).float(), -1).to(values.dtype) @ values


def check(rows: list[Row]) -> None:
    sizes = [(1, 1, 1, 1), (2, 33, 65, 40), (3, 1, 129, 512), (2, 100, 70, 513), (1, 20, 4097, 33)]
    for (N, T, S, D), dtype, scale in itertools.product(
        sizes, (torch.float32, torch.bfloat16), (1.0, 60.0)
    ):
        inputs = [
            (factor * torch.randn(shape, device="cuda")).to(dtype).requires_grad_()
            for shape, factor in (((N, T, D), scale), ((N, S, D), scale), ((D,), 1.0))
        ]
        exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
        result, expected = additive_scores(*inputs), scores(*exact)
        weights = torch.randn_like(result)
        gradients = torch.autograd.grad((result * weights).sum(), inputs)
        expected_gradients = torch.autograd.grad((expected * weights.double()).sum(), exact)
        pairs = zip((result, *gradients), (expected, *expected_gradients), strict=True)
        errors = [relative_error(*pair) for pair in pairs]
        row: Row = {"name": "check", "N,T,S,D": [N, T, S, D], "dtype": str(dtype), "scale": scale}
        rows.append(row | {"errors of scores, a, b, v": errors})
        print(rows[-1], flush=True)
        limit = 1e-4 if dtype == torch.float32 else 1e-2
        assert max(errors) < limit, "the kernel differs from the formula"


def sweep(rows: list[Row], N: int, T: int, D: int) -> None:
    """Time the kernels with several block sizes."""
    a, b = (torch.randn(N, T, D, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    v, g = torch.randn(D, device="cuda").bfloat16(), torch.randn(N, T, T, device="cuda").bfloat16()
    maximum = smaller_maximum(a, b)
    for queries, keys, width, warps in itertools.product((8, 16), (16, 32), (32, 64), (4, 8)):
        if queries * keys * width > 16384:
            continue
        blocks = Blocks(queries, keys, width, warps)

        def run_scores(blocks=blocks):
            triton_scores(a, b, v, maximum, blocks)

        def run_gradients(blocks=blocks):
            triton_gradients(a, b, v, maximum, g, blocks)

        attempt(rows, "scores kernel", run_scores, blocks=str(blocks))
        attempt(rows, "gradient kernels", run_gradients, blocks=str(blocks))


def main() -> None:
    torch.manual_seed(0)
    rows: list[Row] = []
    check(rows)
    sweep(rows, 32, 256, 512)
    for B, T, D in ((32, 256, 512), (1, 256, 512), (512, 64, 128), (4, 1024, 512), (1, 4096, 256)):
        inputs = [
            torch.randn(*shape, device="cuda", dtype=torch.bfloat16).requires_grad_()
            for shape in ((B, T, D), (B, T, D), (B, T, D), (D,))
        ]
        compiled = torch.compile(scores)
        reduced = torch.compile(attend, mode="reduce-overhead")

        def forward_backward(function, inputs=inputs):
            torch.compiler.cudagraph_mark_step_begin()
            output = function(*inputs)
            output.backward(torch.ones_like(output))
            for tensor in inputs:
                tensor.grad = None

        variants = {
            "ours": lambda *x: attend(additive_scores, *x),
            "eager": lambda *x: attend(scores, *x),
            "torch.compile of scores": lambda *x, c=compiled: attend(c, *x),
            "torch.compile": torch.compile(lambda *x: attend(scores, *x)),
            "torch.compile, reduce-overhead": lambda *x, c=reduced: c(scores, *x),
        }
        pairs = B * T * T * D
        for name, function in variants.items():
            if "eager" in name and pairs > 2**33:
                continue
            attempt(
                rows, name, lambda function=function: forward_backward(function), size=[B, T, D]
            )
            torch.cuda.empty_cache()
        floor = 3 * pairs / RECIPROCALS * 1e3
        rows.append({"name": "floor (3 reciprocals per pair)", "ms": floor, "size": [B, T, D]})
        print(rows[-1], flush=True)
    decode(rows)
    save("additive_attention", rows)


def decode(rows: list[Row]) -> None:
    """Time one query per item."""
    q, k, v = (torch.randn(64, n, 512, device="cuda").bfloat16() for n in (1, 256, 1))
    weights = v[0, 0].contiguous()
    with torch.no_grad():
        attempt(rows, "one query, ours", lambda: additive_scores(q, k, weights))
        attempt(rows, "one query, eager", lambda: scores(q, k, weights))


if __name__ == "__main__":
    main()
