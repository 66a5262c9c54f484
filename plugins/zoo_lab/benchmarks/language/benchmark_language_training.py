"""Benchmark 'language-training'."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import nn

import zoo
from zoo_lab.bench.benchmark import Bound
from zoo_lab.bench.result import Goal
from zoo_lab.benchmarks.language.generation import build_peer
from zoo_lab.benchmarks.language.trained_models import TRAINED
from zoo_lab.benchmarks.random_weights import compose_on
from zoo_lab.benchmarks.training_benchmark import Batch, TrainingBenchmark, make_step

CHECKED = (2, 256)
"""Rows and tokens of the batch of the check: the reference path needs much more memory."""
Names = Annotated[str, Field(pattern=f"^({'|'.join(TRAINED)})$")]


class LanguageTraining(TrainingBenchmark):
    """A training step of a language model with AdamW, against transformers, compiled.

    GPT-2 and BERT have float32 weights and autocast, Llama has bfloat16 weights.

    Args:
        model: the model: 'gpt2-small', 'llama-1b' or 'bert-base'.
        batch: number of texts.
        length: number of tokens of a text.
    """

    name: ClassVar[str] = "language-training"
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "model": (
            "gpt2-small",
            {"model": "llama-1b", "batch": 2, "length": 2048},
            {"model": "bert-base", "batch": 32, "length": 512},
        ),
    }
    packages: ClassVar[Sequence[str]] = ("transformers",)
    test_params: ClassVar[Mapping[str, Any]] = {"model": "gpt2-tiny", "batch": 2, "length": 5}

    def __init__(
        self,
        *,
        model: Names = "gpt2-small",
        batch: Annotated[int, Field(ge=1)] = 8,
        length: Annotated[int, Field(ge=2)] = 1024,
    ) -> None:
        self.trained, self.batch, self.length = TRAINED[model], batch, length

    def prepare(self, device: torch.device) -> None:
        dtype = self.trained.dtype if device.type == "cuda" else torch.float32
        model = compose_on(device, self.trained.spec, dtype)
        tokens = torch.randint(3, self.trained.vocab, (self.batch, self.length + 1))
        self.tokens = tokens.to(device)
        objective = zoo.objective(self.trained.spec)
        self.prepare_step(model, objective, self.trained.make_batch(self.tokens))

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.trained.dtype != torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def checked_batch(self) -> Batch:
        rows, length = CHECKED
        return self.trained.make_batch(self.tokens[:rows, : length + 1])

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"transformers, compiled": self._transformers}

    def _transformers(self) -> Callable[[], Any]:
        build = partial(self.trained.build_peer, self.length)
        peer: nn.Module = build_peer(build, self.model).train()
        compiled, tokens = torch.compile(peer), self.tokens[:, :-1].contiguous()

        def loss() -> Any:
            with self.autocast():
                return compiled(tokens, labels=tokens).loss

        return make_step(loss, peer)

    def bound(self) -> Bound:
        """The products with all weights but tables of positions, and those of attention."""
        trained, rows = self.trained, self.batch
        weights = sum(p.numel() for n, p in self.model.named_parameters() if "position" not in n)
        pairs = self.length**2 / (2 if trained.causal else 1)
        attention = rows * trained.layers * 4 * pairs * trained.dim
        operations = 6 * rows * self.length * weights + 3 * attention
        return Bound(bytes=self.least_bytes(), operations=operations)

    def goal(self) -> Goal:
        return self.trained.goal

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "tokens"
