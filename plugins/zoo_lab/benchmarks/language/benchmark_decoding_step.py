"""Benchmark 'decoding-step'."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field

from zoo_lab.bench.benchmark import Benchmark, Bound
from zoo_lab.bench.measuring import StepTime
from zoo_lab.bench.result import Goal
from zoo_lab.benchmarks.language.generation import (
    CHECKED,
    build_peer,
    generate,
    transformers_generate,
)
from zoo_lab.benchmarks.language.llama import PAPER, SIZES, SizeName
from zoo_lab.benchmarks.language.token_checks import check_hypotheses

GOALS = {
    **{(batch, 16): 1.1e-3 for batch in (2, 4, 8, 16, 32)},
    (64, 16): 1.4e-3,
    (128, 16): 1.8e-3,
    (8, 4096): 1.3e-3,
}
"""Seconds by batch and context, for the size '1b' on an H200."""
FLOAT32_GOALS = {2: 2.4e-3, 4: 2.4e-3, 8: 2.4e-3, 16: 2.4e-3, 32: 3.6e-3}
"""Seconds by batch: two and three times the bound; products of 32 rows have three parts in TF32."""
COMPARED = (8, 64)
"""Batches for which the peer is measured: its compilation takes half a minute."""


class DecodingStep(Benchmark):
    """A step of greedy decoding with the architecture of Llama, against a static cache of
    transformers, whose steps are compiled.

    The step is one of the second half of a generation; prompt and start are not in its time.

    Args:
        batch: number of prompts.
        context: length of the prompts.
        length: number of measured steps, and of the steps before them.
        size: sizes of the model: '1b' are those of Llama 3.2 1B.
        dtype: of the weights, on a GPU; on the CPU they are in float32.
    """

    name: ClassVar[str] = "decoding-step"
    paper: ClassVar[str] = PAPER
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "batch": (1, 2, 4, 8, 16, 32, 64, 128),
        "context": (
            4096,
            {"context": 4096, "batch": 1},
            {"context": 16_000, "batch": 1},
        ),
        "dtype": tuple({"dtype": "float32", "batch": batch} for batch in (1, 2, 4, 8, 16, 32)),
    }
    packages: ClassVar[Sequence[str]] = ("transformers",)
    test_params: ClassVar[Mapping[str, Any]] = {"context": 4, "length": 3, "size": "tiny"}

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 8,
        context: Annotated[int, Field(ge=2)] = 16,
        length: Annotated[int, Field(ge=1)] = 64,
        size: SizeName = "1b",
        dtype: Literal["bfloat16", "float32"] = "bfloat16",
    ) -> None:
        self.batch, self.context, self.length, self.size = batch, context, length, size
        self.shape, self.dtype = SIZES[size], getattr(torch, dtype)

    def prepare(self, device: torch.device) -> None:
        self.model = self.shape.build(device, self.dtype)
        self.tokens = torch.randint(3, self.shape.vocab, (self.batch, self.context))
        self.prompts = self.tokens.tolist()

    def check(self) -> None:
        """Compare the first tokens and their scores with the reference path."""
        found = generate(self.model, self.prompts, min(CHECKED, 2 * self.length))
        check_hypotheses(self.model, self.prompts, found)

    def run(self) -> Any:
        return generate(self.model, self.prompts, 2 * self.length)

    def timed(self) -> Callable[[], Any]:
        return StepTime(
            self.run, partial(generate, self.model, self.prompts, self.length), self.length
        )

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"transformers, static cache": self._static} if self.batch in COMPARED else {}

    def _static(self) -> Callable[[], Any]:
        positions = self.context + 2 * self.length
        model = build_peer(lambda: self.shape.peer(positions), self.model)
        prompt = self.tokens.to(model.device)
        long, short = (
            transformers_generate(model, prompt, length, cache_implementation="static")
            for length in (2 * self.length, self.length)
        )
        return StepTime(long, short, self.length)

    def bound(self) -> Bound:
        """All weights, and the keys and values of the mean context."""
        positions = self.batch * (self.context + 1.5 * self.length)
        return Bound(
            bytes=self.dtype.itemsize * (self.shape.weights + self.shape.cached(positions)),
            operations=2 * self.batch * self.shape.weights,
        )

    def goal(self) -> Goal:
        if self.size != "1b":
            return Goal()
        if self.dtype == torch.float32:
            return Goal(seconds=FLOAT32_GOALS.get(self.batch))
        return Goal(seconds=GOALS.get((self.batch, self.context)))

    def items(self) -> tuple[int, str]:
        return self.batch, "tokens"
