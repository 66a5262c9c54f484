"""Benchmark 'gpt2-generation'."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

import zoo
from zoo.generation.pipeline import Hypothesis
from zoo_lab.bench.benchmark import Benchmark, Bound
from zoo_lab.bench.result import Goal
from zoo_lab.benchmarks.language.generation import (
    CHECKED,
    build_peer,
    generate,
    transformers_generate,
)
from zoo_lab.benchmarks.language.gpt2 import gpt2_peer
from zoo_lab.benchmarks.language.token_checks import check_hypotheses, reference_copy
from zoo_lab.benchmarks.random_weights import compose_on

GOALS = {(32, 1): 80_000, (1, 4): 3_500}
"""Tokens per second by batch and width, for the spec 'gpt2-small' on an H200."""
BEAM_TOLERANCE = 1e-2
"""Largest relative difference of the scores of beam search: it can select other hypotheses whose
scores are nearly equal."""


class Gpt2Generation(Benchmark):
    """Greedy generation and beam search with GPT-2 small, against transformers.

    Args:
        batch: number of prompts.
        width: number of hypotheses of the beam; 1 is greedy.
        prompt_length: length of the prompts.
        length: number of generated tokens.
        spec: the spec of the model.
    """

    name: ClassVar[str] = "gpt2-generation"
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "batch": (32, {"batch": 1, "width": 4}),
    }
    packages: ClassVar[Sequence[str]] = ("transformers",)
    test_params: ClassVar[Mapping[str, Any]] = {
        "batch": 2,
        "prompt_length": 3,
        "length": 4,
        "spec": "gpt2-tiny",
    }

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 32,
        width: Annotated[int, Field(ge=1)] = 1,
        prompt_length: Annotated[int, Field(ge=2)] = 64,
        length: Annotated[int, Field(ge=1)] = 256,
        spec: str = "gpt2-small",
    ) -> None:
        self.batch, self.width, self.spec = batch, width, spec
        self.prompt_length, self.length = prompt_length, length

    def prepare(self, device: torch.device) -> None:
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.model = compose_on(device, self.spec, dtype).eval()
        self.model.eos = ()  # no token ends a sequence
        model = zoo.load_spec(self.spec).resolve()["model"]
        self.vocab, self.dim = (model["embedding"][key] for key in ("vocab", "dim"))
        self.layers = model["decoder"]["layers"]
        self.tokens = torch.randint(3, self.vocab, (self.batch, self.prompt_length))
        self.prompts = self.tokens.tolist()

    def check(self) -> None:
        """Compare greedy tokens with the reference path, and of beam search the scores."""
        length = min(CHECKED, self.length)
        found = self._generate(length)
        if self.width == 1:
            check_hypotheses(self.model, self.prompts, found)
            return
        for ours, theirs in zip(
            found, self._generate(length, reference_copy(self.model)), strict=True
        ):
            difference = abs(ours.score - theirs.score)
            message = f"the score is {ours.score}, that of the reference path {theirs.score}"
            assert difference <= BEAM_TOLERANCE * abs(theirs.score), message

    def run(self) -> Any:
        return self._generate(self.length)

    def _generate(self, length: int, model: zoo.Model | None = None) -> list[Hypothesis]:
        beam = {"type": "beam", "width": self.width}
        sampler = "greedy" if self.width == 1 else beam
        return generate(model or self.model, self.prompts, length, sampler=sampler)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        if self.width > 1:
            return {"transformers": self._transformers}
        static = partial(self._transformers, cache_implementation="static")
        return {"transformers": self._transformers, "transformers, static cache": static}

    def _transformers(self, **options: Any) -> Callable[[], Any]:
        build = partial(
            gpt2_peer,
            vocab=self.vocab,
            dim=self.dim,
            layers=self.layers,
            positions=self.prompt_length + self.length,
        )
        model = build_peer(build, self.model)
        prompt = self.tokens.to(model.device)
        return transformers_generate(model, prompt, self.length, num_beams=self.width, **options)

    def bound(self) -> Bound:
        """All weights, and the keys and values of the mean context, at each step."""
        weights = self.layers * 12 * self.dim**2 + self.vocab * self.dim
        rows = self.batch * self.width
        positions = self.prompt_length + self.length / 2
        cached = 2 * self.layers * self.dim * rows * positions
        return Bound(
            bytes=2 * self.length * (weights + cached),
            operations=2 * self.length * rows * weights,
        )

    def goal(self) -> Goal:
        rate = GOALS.get((self.batch, self.width)) if self.spec == "gpt2-small" else None
        return Goal(seconds=None if rate is None else self.items()[0] / rate)

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "tokens"
