"""The language models whose training is measured, here and in transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zoo_lab.bench.result import Goal
from zoo_lab.benchmarks.language.gpt2 import gpt2_peer
from zoo_lab.benchmarks.language.llama import SIZES, LlamaSize


@dataclass(frozen=True)
class TrainedModel:
    """A language model.

    Attributes:
        spec: its spec, or the name of it.
        build_peer: returns the model of transformers for texts of a length.
        vocab: vocabulary size.
        dim: width of the states.
        layers: number of blocks.
        causal: whether it predicts the next token, otherwise tokens at their positions.
        goal: for the batch in the sweep, on an H200.
        dtype: of the weights; float32 weights are used with autocast.
    """

    spec: str | Mapping[str, Any]
    build_peer: Callable[[int], Any]
    vocab: int
    dim: int
    layers: int
    causal: bool
    goal: Goal
    dtype: torch.dtype = torch.float32

    def make_batch(self, tokens: Tensor) -> dict[str, Tensor]:
        """Return the batch of texts that have one token more than the model gets."""
        if self.causal:
            return {"target": tokens}
        return {"source": tokens[:, :-1], "target": tokens[:, :-1]}


def _gpt2(spec: str, vocab: int, dim: int, layers: int, goal: Goal) -> TrainedModel:
    def build(length: int) -> Any:
        return gpt2_peer(vocab=vocab, dim=dim, layers=layers, positions=length)

    return TrainedModel(spec, build, vocab, dim, layers, causal=True, goal=goal)


def _bert(spec: str, vocab: int, dim: int, layers: int, goal: Goal) -> TrainedModel:
    def build(length: int) -> Any:
        from transformers import BertConfig, BertForMaskedLM

        return BertForMaskedLM(
            BertConfig(
                vocab_size=vocab,
                hidden_size=dim,
                intermediate_size=4 * dim,
                num_hidden_layers=layers,
                num_attention_heads=max(2, dim // 64),
                max_position_embeddings=max(512, length),
            )
        )

    return TrainedModel(spec, build, vocab, dim, layers, causal=False, goal=goal)


def _llama(size: LlamaSize, goal: Goal) -> TrainedModel:
    return TrainedModel(
        size.spec(),
        size.peer,
        size.vocab,
        size.dim,
        size.layers,
        causal=True,
        goal=goal,
        dtype=torch.bfloat16,
    )


TRAINED = {
    "gpt2-small": _gpt2("gpt2-small", 50257, 768, 12, Goal(seconds=22e-3)),
    "llama-1b": _llama(SIZES["1b"], Goal(seconds=62e-3)),
    "bert-base": _bert("bert-base", 30522, 768, 12, Goal(ratio=1.15)),
    "gpt2-tiny": _gpt2("gpt2-tiny", 31, 16, 2, Goal()),
    "llama-tiny": _llama(SIZES["tiny"], Goal()),
    "bert-tiny": _bert("bert-tiny", 31, 16, 2, Goal()),
}
