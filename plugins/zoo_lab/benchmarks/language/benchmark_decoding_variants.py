"""Benchmark 'decoding-variants'."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field

import zoo
from zoo.generation.pipeline import Hypothesis
from zoo_lab.bench.benchmark import Benchmark, Bound
from zoo_lab.bench.result import Goal
from zoo_lab.benchmarks.language.generation import CHECKED, generate
from zoo_lab.benchmarks.language.llama import PAPER, SIZES, SizeName
from zoo_lab.benchmarks.language.token_checks import check_hypotheses
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP

Variant = Literal["top-p", "top-k", "penalty", "ragged", "stream"]


class DecodingVariants(Benchmark):
    """Samplers, filters, prompts of several lengths and streams, against greedy decoding of the
    same batch by `zoo.generate`.

    Args:
        variant: 'penalty' is greedy with a repetition penalty, 'ragged' has prompts of several
            lengths, 'stream' yields each token as it is generated.
        batch: number of prompts; a stream has one.
        prompt_length: length of the longest prompt.
        length: number of generated tokens.
        size: sizes of the model: '1b' are those of Llama 3.2 1B.
    """

    name: ClassVar[str] = "decoding-variants"
    paper: ClassVar[str] = PAPER
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "variant": ("top-p", "top-k", "penalty", "ragged", "stream"),
    }
    test_params: ClassVar[Mapping[str, Any]] = {
        "batch": 3,
        "prompt_length": 6,
        "length": 4,
        "size": "tiny",
    }

    def __init__(
        self,
        *,
        variant: Variant = "top-p",
        batch: Annotated[int, Field(ge=1)] = 8,
        prompt_length: Annotated[int, Field(ge=2)] = 64,
        length: Annotated[int, Field(ge=1)] = 128,
        size: SizeName = "1b",
    ) -> None:
        self.variant, self.batch = variant, 1 if variant == "stream" else batch
        self.prompt_length, self.length, self.shape = prompt_length, length, SIZES[size]
        samplers = {"top-p": TopP(p=0.9), "top-k": TopK(k=min(50, self.shape.vocab))}
        self.sampler = samplers.get(variant)
        self.filters = [RepetitionPenalty(penalty=1.2)] if variant == "penalty" else []

    def prepare(self, device: torch.device) -> None:
        self.model = self.shape.build(device)
        shape = (self.batch, self.prompt_length)
        self.greedy_prompts = torch.randint(3, self.shape.vocab, shape).tolist()
        self.prompts = self.greedy_prompts
        if self.variant == "ragged":
            step = self.prompt_length / self.batch
            lengths = [max(1, round(step * (row + 1))) for row in range(self.batch)]
            self.prompts = [p[:n] for p, n in zip(self.prompts, lengths, strict=True)]

    def check(self) -> None:
        """Compare the first tokens with the reference path, those of a stream with `generate`."""
        length = min(CHECKED, self.length)
        found = self._generate(length)
        check_hypotheses(
            self.model, self.prompts, found, sampler=self.sampler, filters=self.filters
        )
        if self.variant == "stream":
            pieces = [int(piece) for piece in self._stream(length)]
            assert pieces == found[0].tokens, "the stream differs from zoo.generate"

    def run(self) -> Any:
        is_stream = self.variant == "stream"
        return self._stream(self.length) if is_stream else self._generate(self.length)

    def _generate(self, length: int) -> list[Hypothesis]:
        sampler = self.sampler or "greedy"
        return generate(self.model, self.prompts, length, sampler=sampler, filters=self.filters)

    def _stream(self, length: int) -> list[str]:
        return list(
            zoo.stream(self.model, self.prompts[0], sampler="greedy", filters=[], max_length=length)
        )

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"zoo.generate, greedy": lambda: self._greedy}

    def _greedy(self) -> Any:
        return generate(self.model, self.greedy_prompts, self.length)

    def bound(self) -> Bound:
        """All weights, and the keys and values of the mean context, at each step."""
        mean = sum(map(len, self.prompts)) + self.batch * self.length / 2
        return Bound(
            bytes=2 * self.length * (self.shape.weights + self.shape.cached(mean)),
            operations=2 * self.length * self.batch * self.shape.weights,
        )

    def goal(self) -> Goal:
        return Goal(ratio=0.9)

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "tokens"
