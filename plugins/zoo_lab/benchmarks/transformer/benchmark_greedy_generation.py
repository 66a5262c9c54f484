"""Benchmark of greedy generation."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

from zoo_lab.bench.benchmark import Bound
from zoo_lab.benchmarks.transformer.generation_benchmark import GenerationBenchmark, build_model


class GreedyGeneration(GenerationBenchmark):
    """Greedy generation with an encoder-decoder Transformer, against transformers' `generate`.

    Args:
        batch: number of items.
        source_length: length of the sources.
        length: number of generated tokens.
        layers: number of blocks of encoder and decoder.
        dim: width of the states.
        hidden: width of the feed-forward networks.
        heads: number of heads.
        vocab: vocabulary size.
    """

    name: ClassVar[str] = "greedy-generation"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"
    target: ClassVar[float | None] = 2.8
    peer_targets: ClassVar[Mapping[str, float]] = {"transformers": 9.0}
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "batch": (1, 8, 64, 512),
        "length": (32, 128, 512),
    }
    sampler_spec: ClassVar[Mapping[str, Any]] = {"type": "greedy"}
    test_params: ClassVar[Mapping[str, Any]] = {
        "batch": 2,
        "source_length": 3,
        "length": 4,
        "layers": 1,
        "dim": 8,
        "hidden": 8,
        "heads": 2,
        "vocab": 11,
    }

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 64,
        source_length: Annotated[int, Field(ge=1)] = 32,
        length: Annotated[int, Field(ge=1)] = 128,
        layers: Annotated[int, Field(ge=1)] = 6,
        dim: Annotated[int, Field(ge=2, multiple_of=2)] = 512,
        hidden: Annotated[int, Field(ge=1)] = 2048,
        heads: Annotated[int, Field(ge=1)] = 8,
        vocab: Annotated[int, Field(ge=4)] = 32000,
    ) -> None:
        self.batch, self.source_length, self.length = batch, source_length, length
        self.layers, self.dim, self.hidden, self.heads = layers, dim, hidden, heads
        self.vocab = vocab

    def prepare(self, device: torch.device) -> None:
        block = {
            "type": "transformer",
            "layers": self.layers,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": self.heads},
            "feed_forward": {"hidden": self.hidden},
            "position": "sinusoidal",
        }
        spec = {
            "type": "seq2seq",
            "source": {"type": "token", "vocab": self.vocab, "dim": self.dim, "scaled": True}
            | {"std": self.dim**-0.5},
            "shared": True,
            "encoder": block,
            "decoder": block | {"output": {"tied": True}},
        }
        self.model, self.sampler = build_model(spec, self.sampler_spec, device)
        self.inputs = {
            "source": torch.randint(4, self.vocab, (self.batch, self.source_length), device=device)
        }

    def bound(self) -> Bound:
        decoder = self.layers * (8 * self.dim**2 + 2 * self.dim * self.hidden)
        weights = decoder + self.dim * self.vocab
        rows = self.batch * self.sampler.width
        # The caches of all previous steps, and of the source, are read in each step.
        cached = self.layers * 2 * self.dim * (rows * self.length / 2 + rows * self.source_length)
        return Bound(
            bytes=2 * self.length * (weights + cached),
            operations=2 * self.length * rows * weights,
        )

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "tokens"

    def _vocab(self) -> int:
        return self.vocab

    def _build_peer(self) -> tuple[Any, Mapping[str, Any]]:
        from transformers import MarianConfig, MarianMTModel

        config = MarianConfig(
            vocab_size=self.vocab,
            d_model=self.dim,
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            encoder_attention_heads=self.heads,
            decoder_attention_heads=self.heads,
            encoder_ffn_dim=self.hidden,
            decoder_ffn_dim=self.hidden,
            max_position_embeddings=max(512, self.length + 1, self.source_length),
            pad_token_id=0,
            eos_token_id=1,
            decoder_start_token_id=0,
            forced_eos_token_id=None,
        )
        return MarianMTModel(config), {"input_ids": self.inputs["source"]}
