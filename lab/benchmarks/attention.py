"""Dot-product attention: the fused path, torch's kernel called by hand, the reference path.

Every side has the same projections. The results, with all gradients, are compared with the
reference path before anything is measured, on the CPU in float32 only. On a GPU the lengths are 256
to 16,384 in bfloat16, on the CPU 256 to 2,048 in float32 on one thread; lengths can be given as
arguments. Writes attention.json in the folder of the environment variable OUT, or in the current
one.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import recording
from zoo.plugin import Attention, Blueprint, Mask, Position
from zoo_alignment.soft import Soft
from zoo_positions.alibi import ALiBi
from zoo_positions.rotary import Rotary
from zoo_positions.t5 import T5
from zoo_transformer.scaled_dot import ScaledDot

DIM, HEADS = 512, 8
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32
LENGTHS = (256, 1024, 4096, 16384) if DEVICE == "cuda" else (256, 1024, 2048)
REFERENCE_LIMIT = 4096  # the reference path stores weights [B, H, T, S]
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2e-2}  # of the norm, of each gradient


@dataclass
class Case:
    """An attention, its mask as the zoo has it, and the arguments of torch's kernel."""

    name: str
    causal: bool = False
    padding: str = "none"  # none, unused (a mask without padding), ragged
    position: str | None = None
    dropout: float = 0.0
    kv_heads: int = HEADS
    kernel: dict[str, bool] = field(default_factory=dict)


CASES = [
    Case("all keys"),
    Case("causal", causal=True, kernel={"is_causal": True}),
    Case("key mask without padding", padding="unused"),
    Case("key mask, ragged", padding="ragged"),
    Case("causal, ragged", causal=True, padding="ragged"),
    Case("causal, grouped heads", causal=True, kv_heads=2, kernel={"is_causal": True}),
    Case("causal, dropout", causal=True, dropout=0.1, kernel={"is_causal": True}),
    Case("causal, rotary", causal=True, position="rotary", kernel={"is_causal": True}),
    Case("causal, alibi", causal=True, position="alibi"),
    Case("causal, t5", causal=True, position="t5"),
]


class Setup:
    """Modules and inputs of a case for B sequences of length T."""

    def __init__(self, case: Case, B: int, T: int, dtype: torch.dtype) -> None:
        torch.manual_seed(T)
        self.case, self.T = case, T
        self.attention = Attention(
            query_dim=DIM,
            key_dim=DIM,
            scorer=Blueprint.of(ScaledDot),
            align=Blueprint.of(Soft, dropout=case.dropout),
            heads=HEADS,
            kv_heads=case.kv_heads if case.kv_heads != HEADS else None,
            project="qkv",
        ).to(DEVICE, dtype)
        positions: dict[str, Position] = {
            "rotary": Rotary(head_dim=DIM // HEADS),
            "alibi": ALiBi(heads=HEADS),
            "t5": T5(heads=HEADS, causal=True),
        }
        self.position = positions[case.position].to(DEVICE, dtype) if case.position else None
        self.states = torch.randn(B, T, DIM, device=DEVICE, dtype=dtype, requires_grad=True)
        keys = None
        if case.padding != "none":
            lengths = torch.full((B,), T)
            if case.padding == "ragged":
                lengths = (T - 3 * torch.arange(1, B + 1)).clamp(min=1)
            keys = (torch.arange(T)[None] < lengths[:, None]).to(DEVICE)
        self.keys = keys

    def parameters(self) -> list[Tensor]:
        modules = [self.attention] + ([self.position] if self.position is not None else [])
        return [self.states, *(p for module in modules for p in module.parameters())]

    def ours(self) -> Tensor:
        mask = Mask(keys=self.keys, causal=self.case.causal)
        context: Tensor = self.attention(self.states, self.states, mask, position=self.position)
        return context

    def reference(self) -> Tensor:
        with recording(self.attention):
            return self.ours()

    def by_hand(self) -> Tensor:
        """Call torch's kernel with the arguments that fit the case best."""
        a, case = self.attention, self.case
        B, T, _ = self.states.shape

        def heads(linear: torch.nn.Module, count: int) -> Tensor:
            split: Tensor = linear(self.states).view(B, T, count, -1).transpose(1, 2)
            return split

        q, k = heads(a.query, HEADS), heads(a.key, case.kv_heads)
        v = heads(a.value, case.kv_heads)
        if case.position == "rotary":
            assert self.position is not None
            q, k = self.position("rotate", q), self.position("rotate", k)
        attn_mask = None
        if not case.kernel and (case.causal or case.padding == "ragged"):
            attn_mask = Mask(keys=self.keys, causal=case.causal).dense(T, T, q.device)
            attn_mask = None if attn_mask is None else attn_mask[:, None]
            if self.position is not None:
                bias = self.position("bias", q, k).to(q.dtype)
                hidden = torch.zeros((), dtype=torch.bool) if attn_mask is None else ~attn_mask
                attn_mask = bias.masked_fill(hidden.to(bias.device), float("-inf"))
        context = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=attn_mask,
            dropout_p=case.dropout,
            enable_gqa=case.kv_heads != HEADS,
            **case.kernel,
        )
        out: Tensor = a.out(context.transpose(1, 2).flatten(2))
        return out


def differences(setup: Setup, path: Callable[[], Tensor]) -> float:
    """Return the largest relative difference of context and gradients from the reference path."""
    weights = torch.randn_like(setup.states.detach())
    results = []
    for function in (path, setup.reference):
        context = function()
        grads = torch.autograd.grad((context * weights).sum(), setup.parameters())
        results.append([context.detach(), *grads])
    # Differences below the rounding error of the inputs, such as the gradient of the key bias
    # (zero), are relative to the norm of the largest gradient.
    scale = max(float(g.double().norm()) for g in results[1][1:])
    return max(
        float((ours.double() - theirs.double()).norm())
        / (float(theirs.double().norm()) + 1e-2 * scale)
        for ours, theirs in zip(*results, strict=True)
    )


def milliseconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Return the smallest time of a call: on the CPU that of this process, without others."""
    clock = time.perf_counter if DEVICE == "cuda" else time.process_time
    times = []
    for _ in range(repeats + 2):
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        started = clock()
        function()
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        times.append(clock() - started)
    return 1e3 * min(times[2:])


def backward(path: Callable[[], Tensor], parameters: list[Tensor]) -> None:
    torch.autograd.grad(path().sum(), parameters)


def measure(case: Case, B: int, T: int) -> dict[str, object]:
    setup = Setup(case, B, T, DTYPE)
    row: dict[str, object] = {"case": case.name, "B": B, "T": T}
    paths = {"ours": setup.ours, "by hand": setup.by_hand}
    if T <= REFERENCE_LIMIT:
        paths["reference"] = setup.reference
    for name, path in paths.items():
        with torch.no_grad():
            row[f"{name}, forward ms"] = round(milliseconds(path), 3)
        step = partial(backward, path, setup.parameters())
        if DEVICE == "cuda":
            torch.cuda.reset_peak_memory_stats()
        row[f"{name}, forward + backward ms"] = round(milliseconds(step), 3)
        if DEVICE == "cuda":
            row[f"{name}, MiB"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
    return row


def main() -> None:
    torch.set_num_threads(1)
    lengths = [int(argument) for argument in sys.argv[1:]] or LENGTHS
    rows: list[dict[str, object]] = []
    for case in CASES:
        for dtype in {torch.float32, DTYPE}:
            if case.dropout:
                continue  # random weights differ; the tests compare their statistics
            for T in (1, 37, 257):
                setup = Setup(case, 3, T, dtype)
                for path in (setup.ours, setup.by_hand):
                    found = differences(setup, path)
                    assert found < TOLERANCE[dtype], f"{case.name}, {dtype}, T {T}: {found:.1e}"
    print("context and gradients agree with the reference path")
    for T in lengths:
        B = max(1, 4096 // T) if DEVICE == "cuda" else 1
        for case in CASES:
            rows.append(measure(case, B, T))
            print(" | ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    path = os.path.join(os.environ.get("OUT", "."), "attention.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"device": DEVICE, "torch": torch.__version__, "rows": rows}, file, indent=1)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
