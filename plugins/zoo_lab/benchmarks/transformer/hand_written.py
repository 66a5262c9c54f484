"""An encoder-decoder Transformer written in plain torch, for comparison with the composed one.

Parameters have the names of the composed model `seq2seq`. Notation: B batch, T queries, S keys, D
width, H heads.
"""

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class HandWrittenAttention(nn.Module):
    """Multi-head attention by `scaled_dot_product_attention`."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x: Tensor, y: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        q, k, v = self._split(self.query(x)), self._split(self.key(y)), self._split(self.value(y))
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        output: Tensor = self.out(context.transpose(1, 2).flatten(2))
        return output

    def _split(self, x: Tensor) -> Tensor:
        B, T, D = x.shape
        return x.view(B, T, self.heads, D // self.heads).transpose(1, 2)  # [B, H, T, D / H]


class HandWrittenFeedForward(nn.Module):
    """Feed-forward network with ReLU."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.down(F.relu(self.up(x)))
        return output


class HandWrittenBlock(nn.Module):
    """Post-norm block, with cross-attention in the decoder."""

    def __init__(self, dim: int, heads: int, hidden: int, dropout: float, cross: bool) -> None:
        super().__init__()
        self.attention, self.attention_norm = HandWrittenAttention(dim, heads), nn.LayerNorm(dim)
        if cross:
            self.cross, self.cross_norm = HandWrittenAttention(dim, heads), nn.LayerNorm(dim)
        self.feed_forward, self.feed_forward_norm = (
            HandWrittenFeedForward(dim, hidden),
            nn.LayerNorm(dim),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None, memory: Tensor | None = None) -> Tensor:
        """Process x [B, T, D]; with a memory, attention is causal and the mask is the memory's."""
        causal = memory is not None
        context = self.attention(x, x, None if causal else mask, causal)
        x = self.attention_norm(x + self.dropout(context))
        if memory is not None:
            x = self.cross_norm(x + self.dropout(self.cross(x, memory, mask, False)))
        output: Tensor = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
        return output


class HandWrittenStack(nn.Module):
    """The blocks of the encoder or the decoder."""

    def __init__(self, blocks: Iterable[HandWrittenBlock]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None = None) -> Tensor:
        for block in self.blocks:
            x = block(x, mask, memory)
        return x


class HandWrittenEmbedding(nn.Module):
    """Token embedding."""

    def __init__(self, vocab: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab, dim, padding_idx=0)

    def forward(self, tokens: Tensor) -> Tensor:
        vectors: Tensor = self.table(tokens)
        return vectors


class HandWrittenTransformer(nn.Module):
    """Encoder-decoder Transformer with sinusoidal positions and tied embeddings.

    Args:
        vocab: vocabulary size; token 0 is the padding.
        dim: width of the states.
        heads: number of heads.
        layers: number of blocks of the encoder and of the decoder.
        hidden: width of the feed-forward networks.
        dropout: dropout probability.
        length: largest number of positions.

    Shapes:
        source [B, S], inputs [B, T] -> logits [B, T, V].
    """

    def __init__(
        self,
        *,
        vocab: int,
        dim: int,
        heads: int,
        layers: int,
        hidden: int,
        dropout: float,
        length: int,
    ) -> None:
        super().__init__()
        self.source = HandWrittenEmbedding(vocab, dim)
        self.encoder, self.decoder = (
            HandWrittenStack(
                HandWrittenBlock(dim, heads, hidden, dropout, cross) for _ in range(layers)
            )
            for cross in (False, True)
        )
        self.dropout = nn.Dropout(dropout)
        frequencies = torch.exp(torch.arange(0, dim, 2).double() * (-math.log(10000.0) / dim))
        angles = torch.arange(length).double()[:, None] * frequencies
        waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        self.register_buffer("waves", waves.float(), persistent=False)

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        mask = (source != 0)[:, None, None]  # [B, 1, 1, S]
        memory = self.encoder(self._embed(source), mask)
        x = self.decoder(self._embed(inputs), mask, memory)
        return F.linear(x, self.source.table.weight)

    def _embed(self, tokens: Tensor) -> Tensor:
        x = self.source(tokens)
        dropped: Tensor = self.dropout(x + self.get_buffer("waves")[: x.shape[1]])
        return dropped
