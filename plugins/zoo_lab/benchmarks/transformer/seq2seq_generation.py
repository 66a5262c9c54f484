"""Shared by the benchmarks of generation with an encoder-decoder Transformer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

from zoo_lab.bench.benchmark import Bound
from zoo_lab.benchmarks.transformer.generation_benchmark import GenerationBenchmark, build_model


@dataclass(frozen=True, kw_only=True)
class TransformerSize:
    """Sizes of an encoder-decoder Transformer and of its sources.

    Args:
        source_length: length of the sources.
        layers: number of blocks of encoder and decoder.
        dim: width of the states.
        hidden: width of the feed-forward networks.
        heads: number of heads.
        vocab: vocabulary size.
    """

    source_length: Annotated[int, Field(ge=1)] = 32
    layers: Annotated[int, Field(ge=1)] = 6
    dim: Annotated[int, Field(ge=2, multiple_of=2)] = 512
    hidden: Annotated[int, Field(ge=1)] = 2048
    heads: Annotated[int, Field(ge=1)] = 8
    vocab: Annotated[int, Field(ge=4)] = 32000


class Seq2SeqGeneration(GenerationBenchmark):
    """Generation with an encoder-decoder Transformer; a subclass names the sampler.

    Args:
        batch: number of items.
        length: number of generated tokens.
        size: the sizes of the model.
    """

    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"
    sampler_spec: ClassVar[Mapping[str, Any]]
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
        length: Annotated[int, Field(ge=1)] = 128,
        size: TransformerSize,
    ) -> None:
        self.batch, self.length, self.size = batch, length, size

    def prepare(self, device: torch.device) -> None:
        size = self.size
        block = {
            "type": "transformer",
            "layers": size.layers,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": size.heads},
            "feed_forward": {"hidden": size.hidden},
            "position": "sinusoidal",
        }
        spec = {
            "type": "seq2seq",
            "source": {"type": "token", "vocab": size.vocab, "dim": size.dim, "scaled": True}
            | {"std": size.dim**-0.5},
            "shared": True,
            "encoder": block,
            "decoder": block | {"output": {"tied": True}},
        }
        self.model, self.sampler = build_model(spec, self.sampler_spec, device)
        self.inputs = {
            "source": torch.randint(4, size.vocab, (self.batch, size.source_length), device=device)
        }

    def bound(self) -> Bound:
        size = self.size
        decoder = size.layers * (8 * size.dim**2 + 2 * size.dim * size.hidden)
        weights = decoder + size.dim * size.vocab
        rows = self.batch * self.sampler.width
        # The caches of all previous steps, and of the source, are read in each step.
        cached = size.layers * 2 * size.dim * (rows * self.length / 2 + rows * size.source_length)
        return Bound(
            bytes=2 * self.length * (weights + cached),
            operations=2 * self.length * rows * weights,
        )

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "tokens"

    def _vocab(self) -> int:
        return self.size.vocab

    def _build_peer(self) -> tuple[Any, Mapping[str, Any]]:
        from transformers import MarianConfig, MarianMTModel

        size = self.size
        config = MarianConfig(
            vocab_size=size.vocab,
            d_model=size.dim,
            encoder_layers=size.layers,
            decoder_layers=size.layers,
            encoder_attention_heads=size.heads,
            decoder_attention_heads=size.heads,
            encoder_ffn_dim=size.hidden,
            decoder_ffn_dim=size.hidden,
            max_position_embeddings=max(512, self.length + 1, size.source_length),
            pad_token_id=0,
            eos_token_id=1,
            decoder_start_token_id=0,
            forced_eos_token_id=None,
        )
        return MarianMTModel(config), {"input_ids": self.inputs["source"]}
