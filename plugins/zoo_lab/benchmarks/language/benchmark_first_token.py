"""Benchmark 'first-token'."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

from zoo_lab.bench.benchmark import Benchmark, Bound
from zoo_lab.bench.result import Goal
from zoo_lab.benchmarks.language.generation import build_peer, generate, transformers_generate
from zoo_lab.benchmarks.language.llama import PAPER, SIZES, SizeName
from zoo_lab.benchmarks.language.token_checks import check_hypotheses

GOALS = {16: 2e-3, 512: 6e-3, 4096: 22e-3, 16_000: 95e-3}
"""Seconds by the length of the prompt, for the size '1b' on an H200."""


class FirstToken(Benchmark):
    """The time until the first token of a prompt, with the architecture of Llama, against
    transformers.

    Args:
        prompt_length: length of the prompt.
        size: sizes of the model: '1b' are those of Llama 3.2 1B.
    """

    name: ClassVar[str] = "first-token"
    paper: ClassVar[str] = PAPER
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"prompt_length": tuple(GOALS)}
    packages: ClassVar[Sequence[str]] = ("transformers",)
    test_params: ClassVar[Mapping[str, Any]] = {"prompt_length": 4, "size": "tiny"}

    def __init__(
        self,
        *,
        prompt_length: Annotated[int, Field(ge=2)] = 512,
        size: SizeName = "1b",
    ) -> None:
        self.prompt_length, self.size, self.shape = prompt_length, size, SIZES[size]

    def prepare(self, device: torch.device) -> None:
        self.model = self.shape.build(device)
        self.tokens = torch.randint(3, self.shape.vocab, (1, self.prompt_length))
        self.prompts = self.tokens.tolist()

    def check(self) -> None:
        """Compare the token and its score with the reference path."""
        check_hypotheses(self.model, self.prompts, self.run())

    def run(self) -> Any:
        return generate(self.model, self.prompts, 1)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"transformers": self._transformers}

    def _transformers(self) -> Callable[[], Any]:
        model = build_peer(lambda: self.shape.peer(self.prompt_length + 1), self.model)
        return transformers_generate(model, self.tokens.to(model.device), 1)

    def bound(self) -> Bound:
        """The products of the blocks, causal attention, and the output layer of one position."""
        shape, T = self.shape, self.prompt_length
        attention = shape.layers * 4 * T**2 / 2 * shape.dim
        output = shape.dim * shape.vocab
        return Bound(
            bytes=2 * (shape.weights + shape.cached(T)),
            operations=2 * T * shape.block_weights + attention + 2 * output,
        )

    def goal(self) -> Goal:
        return Goal(seconds=GOALS.get(self.prompt_length) if self.size == "1b" else None)

    def items(self) -> tuple[int, str]:
        return self.prompt_length, "tokens of the prompt"
