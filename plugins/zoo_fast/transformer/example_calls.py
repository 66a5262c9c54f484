"""Calls of Transformers for the laws of accelerations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from zoo.attention.heads import QueryKeyNorm
from zoo.plugin import Attention, Blueprint, Call, Mask, Memory
from zoo_alignment.soft import Soft
from zoo_positions.disentangled import Disentangled
from zoo_positions.grid_bias import GridBias
from zoo_positions.rotary import Rotary
from zoo_tokens.token import Token
from zoo_transformer.block import Block
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.layer_kind import LayerKind, StackOptions
from zoo_transformer.norm import Norm
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder

DIM = 64
_DISENTANGLED = Blueprint.of(Disentangled, max_distance=4)


def block_calls(dtype: torch.dtype) -> Iterator[Call]:
    """Yield calls of blocks with and without a memory, with a masked row and one position."""
    for memory_dim, norm in ((0, Norm()), (DIM, Norm()), (DIM, Norm(kind="rms", place="pre"))):
        block = Block(
            dim=DIM,
            memory_dim=memory_dim,
            attention=_attention(),
            cross=_attention() if memory_dim else None,
            feed_forward=Blueprint.of(FeedForward, hidden=9),
            norm=norm,
        ).to(dtype)
        for length in (5, 1):
            memory = _memory(2, 3, dtype)
            options: dict[str, Any] = {"position": None}
            if memory_dim:
                options |= {"memory": memory.states, "memory_mask": Mask(keys=memory.mask)}
            x = torch.randn(2, length, DIM).to(dtype)
            yield Call(block, (x, Mask(causal=True)), options)


def encoder_calls(dtype: torch.dtype) -> Iterator[Call]:
    """Yield calls of the blocks of an encoder."""
    bias = Blueprint.of(LayerKind, position=Blueprint.of(GridBias, size=(1, 2)))
    before = Blueprint.of(Norm, place="pre")
    for params in (
        {},
        {"share_layers": True},
        {"norm": before},
        {"norm": before, "share_layers": True},
        {"position": _DISENTANGLED},
        {"options": StackOptions(pattern=[bias])},
    ):
        encoder = TransformerEncoder(
            input_dim=DIM,
            layers=2,
            attention=_attention(),
            feed_forward=Blueprint.of(FeedForward, hidden=9),
            **params,
        ).to(dtype)
        memory = _memory(2, 3, dtype)
        yield Call(encoder, (memory.states, Mask(keys=memory.mask)), method="run_blocks")


def decoder_calls(dtype: torch.dtype) -> Iterator[tuple[TransformerDecoder, Memory, Tensor]]:
    """Yield decoders with a memory and tokens [B, T]; a row of the memory is masked."""
    for memory_dim, params in (
        (DIM, {}),
        (0, {"norm": Blueprint.of(Norm, kind="rms", place="pre")}),
        (DIM, {"position": Blueprint.of(Rotary, layout="interleaved")}),
        (DIM, {"attention": _attention(bias="qvo")}),
    ):
        yield _decoder_call(dtype, memory_dim=memory_dim, **{"attention": _attention(), **params})


def normed_decoder_calls(
    dtype: torch.dtype,
) -> Iterator[tuple[TransformerDecoder, Memory, Tensor]]:
    """Yield decoders with norms that kernels do not compute, as `decoder_calls`."""
    for place, kind, over in (("output", "rms", "all"), ("both", "rms-plus-one", "head")):
        attention = _attention(norm=Blueprint.of(QueryKeyNorm, kind=kind, over=over))
        norm = Blueprint.of(Norm, place=place)
        yield _decoder_call(dtype, memory_dim=DIM, attention=attention, norm=norm)


def biased_decoder_calls(
    dtype: torch.dtype,
) -> Iterator[tuple[TransformerDecoder, Memory, Tensor]]:
    """Yield a decoder whose scores have a bias that depends on queries and keys."""
    yield _decoder_call(dtype, memory_dim=DIM, attention=_attention(), position=_DISENTANGLED)


def _decoder_call(dtype: torch.dtype, **params: Any) -> tuple[TransformerDecoder, Memory, Tensor]:
    decoder = TransformerDecoder(
        embedding=Token(vocab=11, dim=DIM),
        layers=2,
        feed_forward=Blueprint.of(FeedForward, hidden=9),
        **params,
    )
    return decoder.to(dtype).eval(), _memory(2, 3, dtype), torch.randint(1, 11, (2, 3))


def _attention(**params: Any) -> Blueprint[Attention]:
    return Blueprint.of(
        Attention,
        scorer=Blueprint.of(ScaledDot),
        align=Blueprint.of(Soft),
        heads=2,
        kv_heads=1,
        **params,
    )


def _memory(batch: int, length: int, dtype: torch.dtype) -> Memory:
    states = torch.randn(batch, length, DIM).to(dtype)
    mask = torch.ones(batch, length, dtype=torch.bool)
    mask[-1] = False
    return Memory(states, mask, states.mean(dim=1))
