"""Benchmark of a decoder with the architecture of Llama."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

from zoo_lab.bench.benchmark import Bound
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
    paper: ClassVar[str] = "Grattafiori et al. 2024, The Llama 3 Herd of Models, arXiv:2407.21783"
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
        self.layers, self.dim, self.heads, self.kv_heads = layers, dim, heads, kv_heads
        self.hidden, self.vocab = hidden, vocab

    def prepare(self, device: torch.device) -> None:
        embedding = {"type": "token", "vocab": self.vocab, "dim": self.dim, "std": 0.02}
        attention = {"scorer": "scaled-dot", "align": "soft", "heads": self.heads}
        network = {"hidden": self.hidden, "gated": True, "activation": "silu", "bias": False}
        spec = {
            "type": "language-model",
            "embedding": embedding | {"padding": None},
            "decoder": {
                "type": "transformer",
                "layers": self.layers,
                "attention": attention | {"kv_heads": self.kv_heads, "bias": False},
                "feed_forward": network,
                "norm": {"kind": "rms", "place": "pre"},
                "position": {"type": "rotary", "theta": 500000.0},
                "output": {"tied": True},
            },
        }
        self.model, self.sampler = build_model(spec, "greedy", device)
        self.inputs = {
            "prompt": torch.randint(1, self.vocab, (self.batch, self.prompt_length), device=device)
        }

    def bound(self) -> Bound:
        grouped = 2 + 2 * self.kv_heads / self.heads
        block = self.dim**2 * grouped + 3 * self.dim * self.hidden
        weights = self.layers * block + self.dim * self.vocab
        length = self.prompt_length + self.length / 2
        width = self.dim * self.kv_heads / self.heads
        cached = 2 * self.layers * self.batch * length * width
        return Bound(
            bytes=2 * self.length * (weights + cached),
            operations=2 * self.length * self.batch * weights,
        )

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "tokens"

    def _vocab(self) -> int:
        return self.vocab

    def _build_peer(self) -> tuple[Any, Mapping[str, Any]]:
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(
            vocab_size=self.vocab,
            hidden_size=self.dim,
            intermediate_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.dim // self.heads,
            max_position_embeddings=max(2048, self.prompt_length + self.length),
            tie_word_embeddings=True,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
        prompt = self.inputs["prompt"]
        return LlamaForCausalLM(config), {
            "input_ids": prompt,
            "attention_mask": torch.ones_like(prompt),
        }
