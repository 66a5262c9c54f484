"""Models with the architecture of GPT-2 in transformers, with random weights."""

from __future__ import annotations

from typing import Any


def gpt2_peer(*, vocab: int, dim: int, layers: int, positions: int) -> Any:
    """Return a model of transformers, with heads of width 64, at least two."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=vocab,
        n_embd=dim,
        n_layer=layers,
        n_head=max(2, dim // 64),
        n_positions=max(1024, positions),
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
    )
    return GPT2LMHeadModel(config)
