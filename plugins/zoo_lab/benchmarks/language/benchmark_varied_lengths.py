"""Benchmark 'varied-lengths'."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

import zoo
from zoo.generation.pipeline import Hypothesis
from zoo_lab.bench.benchmark import Benchmark
from zoo_lab.bench.result import Goal
from zoo_lab.benchmarks.language.generation import CHECKED, generate
from zoo_lab.benchmarks.language.llama import SIZES
from zoo_lab.benchmarks.language.token_checks import check_hypotheses, reference_copy
from zoo_lab.benchmarks.random_weights import compose_on

MODELS: dict[str, tuple[Any, str, range]] = {
    "llama-1b": (SIZES["1b"].spec(), "embedding", range(60, 400)),
    "gpt2-small": ("gpt2-small", "embedding", range(60, 400)),
    "transformer-base": ("transformer-base", "source", range(5, 60)),
    "llama-tiny": (SIZES["tiny"].spec(), "embedding", range(3, 9)),
    "transformer-tiny": ("transformer-tiny", "source", range(3, 9)),
}
"""Spec, the part of the model with the vocabulary, and lengths of prompts or sources, by name."""
Names = Annotated[str, Field(pattern=f"^({'|'.join(MODELS)})$")]
TOLERANCE = 1e-2
"""Largest relative difference of scores: greedy search can select other tokens whose
log-probabilities are nearly equal."""


class VariedLengths(Benchmark):
    """Calls of greedy generation whose prompts, or sources, each have another random length,
    against as many calls with prompts of the mean length.

    On a GPU a call of each length was made before, so that most graphs are captured.

    Args:
        model: the model: 'llama-1b', 'gpt2-small', or 'transformer-base' with sources.
        batch: number of prompts of a call.
        calls: number of calls that are measured together.
        length: number of generated tokens.
    """

    name: ClassVar[str] = "varied-lengths"
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "model": ("llama-1b", "gpt2-small", {"model": "transformer-base", "batch": 8}),
    }
    test_params: ClassVar[Mapping[str, Any]] = {"model": "llama-tiny", "calls": 2, "length": 3}

    def __init__(
        self,
        *,
        model: Names = "llama-1b",
        batch: Annotated[int, Field(ge=1)] = 1,
        calls: Annotated[int, Field(ge=1)] = 16,
        length: Annotated[int, Field(ge=1)] = 64,
    ) -> None:
        self.spec, self.part, self.lengths = MODELS[model]
        self.batch, self.calls, self.length = batch, calls, length

    def prepare(self, device: torch.device) -> None:
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.model = compose_on(device, self.spec, dtype).eval()
        self.model.eos = ()  # no token ends a sequence
        vocab = zoo.load_spec(self.spec).resolve()["model"][self.part]["vocab"]
        self.tokens = torch.randint(3, vocab, (self.batch, self.lengths.stop))
        if device.type == "cuda":
            for at in torch.randperm(len(self.lengths)).tolist():
                self._generate(self.model, self.lengths[at], self.length)

    def check(self) -> None:
        """Compare calls of several lengths, which are padded on a GPU, with the reference path: the
        tokens of a language model, and the scores with sources."""
        reference, new = reference_copy(self.model), min(CHECKED, self.length)
        for length in self.lengths[:: max(1, len(self.lengths) // 8)]:
            found = self._generate(self.model, length, new)
            if self.part == "embedding":
                check_hypotheses(self.model, self.tokens[:, :length].tolist(), found)
                continue
            for ours, theirs in zip(found, self._generate(reference, length, new), strict=True):
                difference = abs(ours.score - theirs.score)
                message = f"the score is {ours.score}, that of the reference path {theirs.score}"
                assert difference <= TOLERANCE * abs(theirs.score), message

    def run(self) -> Any:
        places = torch.randint(len(self.lengths), (self.calls,)).tolist()
        return [self._generate(self.model, self.lengths[at], self.length) for at in places]

    def _generate(self, model: zoo.Model, length: int, new: int) -> list[Hypothesis]:
        return generate(model, self.tokens[:, :length].tolist(), new)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"zoo.generate, one length": self._build_one_length}

    def _build_one_length(self) -> Callable[[], Any]:
        # Workspaces that captured graphs use are freed before a peer is measured.
        model, mean = copy.deepcopy(self.model), self._mean_length()
        return lambda: [self._generate(model, mean, self.length) for _ in range(self.calls)]

    def _mean_length(self) -> int:
        return sum(self.lengths) // len(self.lengths)

    def goal(self) -> Goal:
        return Goal(ratio=0.9)

    def items(self) -> tuple[int, str]:
        return self.calls * self.batch * self.length, "tokens"
