"""Models with the architecture of Llama 3.2, here and in transformers, with random weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import Field

from zoo import Model
from zoo_lab.benchmarks.random_weights import compose_on

PAPER = "Grattafiori et al. 2024, The Llama 3 Herd of Models, arXiv:2407.21783"
SizeName = Annotated[str, Field(pattern="^(1b|tiny)$")]


@dataclass(frozen=True)
class LlamaSize:
    """Sizes of a decoder: grouped keys and values, gated networks, tied output layer."""

    layers: int
    dim: int
    heads: int
    kv_heads: int
    hidden: int
    vocab: int

    @property
    def block_weights(self) -> float:
        """Number of weights of all blocks."""
        grouped = 2 + 2 * self.kv_heads / self.heads
        return self.layers * (self.dim**2 * grouped + 3 * self.dim * self.hidden)

    @property
    def weights(self) -> float:
        """Number of weights of the blocks and the output layer, which every step reads."""
        return self.block_weights + self.dim * self.vocab

    def cached(self, positions: float) -> float:
        """Return the number of elements of the keys and values of so many positions."""
        return 2 * self.layers * positions * self.dim * self.kv_heads / self.heads

    def model(self) -> dict[str, Any]:
        """Return the model of a spec."""
        embedding = {"type": "token", "vocab": self.vocab, "dim": self.dim, "std": 0.02}
        attention = {"scorer": "scaled-dot", "align": "soft", "heads": self.heads}
        return {
            "type": "language-model",
            "embedding": embedding | {"padding": None},
            "decoder": {
                "type": "transformer",
                "layers": self.layers,
                "attention": attention | {"kv_heads": self.kv_heads, "bias": False},
                "feed_forward": {
                    "hidden": self.hidden,
                    "gated": True,
                    "activation": "silu",
                    "bias": False,
                },
                "norm": {"kind": "rms", "place": "pre"},
                "position": {"type": "rotary", "theta": 500000.0},
                "output": {"tied": True},
            },
        }

    def spec(self) -> dict[str, Any]:
        """Return a spec for generation and training."""
        return {"zoo": 1, "name": "llama", "model": self.model(), "objective": "cross-entropy"}

    def build(self, device: torch.device, dtype: torch.dtype = torch.bfloat16) -> Model:
        """Return a model in evaluation mode; no token ends a sequence.

        Args:
            dtype: of the weights, on a GPU; on the CPU they are in float32.
        """
        dtype = dtype if device.type == "cuda" else torch.float32
        model = compose_on(device, self.spec(), dtype).eval()
        model.eos = ()
        return model

    def peer(self, max_positions: int, **options: Any) -> Any:
        """Return a model of transformers; options are those of its configuration."""
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(
            vocab_size=self.vocab,
            hidden_size=self.dim,
            intermediate_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.dim // self.heads,
            max_position_embeddings=max_positions,
            tie_word_embeddings=True,
            **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None, **options},
        )
        return LlamaForCausalLM(config)


SIZES = {
    "1b": LlamaSize(layers=16, dim=2048, heads=32, kv_heads=8, hidden=8192, vocab=128_256),
    "tiny": LlamaSize(layers=1, dim=16, heads=4, kv_heads=2, hidden=8, vocab=31),
}
