"""Benchmark of a decoder with the architecture of Llama."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

from zoo_lab.bench.benchmark import Bound
from zoo_lab.benchmarks.language.llama import PAPER, LlamaSize
from zoo_lab.benchmarks.transformer.generation_benchmark import GenerationBenchmark, build_model


class LlamaDecoding(GenerationBenchmark):
    """Greedy decoding with the architecture of Llama 3.2 1B, against transformers' `generate`.

    Args:
        batch: number of items.
        prompt_length: length of the prompts.
        length: number of generated tokens.
        layers: number of blocks.
        dim: width of the states.
        heads: number of query heads.
        kv_heads: number of heads of keys and values.
        hidden: width of the gated feed-forward networks.
        vocab: vocabulary size.
    """

    name: ClassVar[str] = "llama-decoding"
    paper: ClassVar[str] = PAPER
    target: ClassVar[float | None] = 3.5
    bound_target: ClassVar[float | None] = 0.7
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "batch": (1, 8, 64),
        "length": (32, 128, 512),
    }
    test_params: ClassVar[Mapping[str, Any]] = {
        "prompt_length": 3,
        "length": 4,
        "layers": 1,
        "dim": 16,
        "heads": 4,
        "kv_heads": 2,
        "hidden": 8,
        "vocab": 11,
    }

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 1,
        prompt_length: Annotated[int, Field(ge=1)] = 16,
        length: Annotated[int, Field(ge=1)] = 128,
        layers: Annotated[int, Field(ge=1)] = 16,
        dim: Annotated[int, Field(ge=2, multiple_of=2)] = 2048,
        heads: Annotated[int, Field(ge=1)] = 32,
        kv_heads: Annotated[int, Field(ge=1)] = 8,
        hidden: Annotated[int, Field(ge=1)] = 8192,
        vocab: Annotated[int, Field(ge=4)] = 128256,
    ) -> None:
        self.batch, self.prompt_length, self.length = batch, prompt_length, length
        self.shape = LlamaSize(layers, dim, heads, kv_heads, hidden, vocab)

    def prepare(self, device: torch.device) -> None:
        self.model, self.sampler = build_model(self.shape.model(), "greedy", device)
        size = (self.batch, self.prompt_length)
        self.inputs = {"prompt": torch.randint(1, self.shape.vocab, size, device=device)}

    def bound(self) -> Bound:
        positions = self.batch * (self.prompt_length + self.length / 2)
        weights = self.shape.weights
        return Bound(
            bytes=2 * self.length * (weights + self.shape.cached(positions)),
            operations=2 * self.length * self.batch * weights,
        )

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "tokens"

    def _vocab(self) -> int:
        return self.shape.vocab

    def _build_peer(self) -> tuple[Any, Mapping[str, Any]]:
        positions = max(2048, self.prompt_length + self.length)
        prompt = self.inputs["prompt"]
        return self.shape.peer(positions, eos_token_id=2), {
            "input_ids": prompt,
            "attention_mask": torch.ones_like(prompt),
        }
