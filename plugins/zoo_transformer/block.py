"""One block of a Transformer: attention to itself, to a memory if there is one, feed-forward.

Letters: B batch, T positions, S keys, D width.
"""

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from zoo.plugin import Attention, Blueprint, Mask, Position, WidthConflict
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.norm import Norm


class Block(nn.Module):
    """What encoders and decoders share: each part within a residual sum and a norm."""

    def __init__(
        self,
        *,
        dim: int,
        memory_dim: int,
        attention: Blueprint[Attention],
        cross: Blueprint[Attention] | None,
        feed_forward: Blueprint[FeedForward],
        norm: Norm,
        dropout: float,
    ) -> None:
        super().__init__()
        self.pre = norm.pre
        self.attention = _build_attention(attention, dim, dim)
        self.attention_norm = norm.make(dim)
        if cross is not None:
            self.cross = _build_attention(cross, dim, memory_dim)
            self.cross_norm = norm.make(dim)
        self.feed_forward = feed_forward.build(dim=dim)
        self.feed_forward_norm = norm.make(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        mask: Mask,
        *,
        position: Position | None,
        offset: int | Tensor = 0,
        update_cache: Callable[[dict[str, Tensor]], Mapping[str, Tensor]] | None = None,
        memory: Mapping[str, Tensor] | None = None,
        memory_mask: Mask | None = None,
    ) -> Tensor:
        """x [B, T, D] -> [B, T, D]; `update_cache` turns the new keys and values into all so far."""

        def self_attention(y: Tensor) -> Tensor:
            prepared = self.attention.prepare(y, position=position, offset=offset)
            cached = prepared if update_cache is None else update_cache(prepared)
            context: Tensor = self.attention(y, cached, mask, position=position, offset=offset)
            return context

        x = self._residual(x, self_attention, self.attention_norm)
        if memory is not None:
            source = memory

            def cross_attention(y: Tensor) -> Tensor:
                context: Tensor = self.cross(y, source, memory_mask, offset=offset)
                return context

            x = self._residual(x, cross_attention, self.cross_norm)
        return self._residual(x, self.feed_forward, self.feed_forward_norm)

    def _residual(self, x: Tensor, part: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        """x plus the part's answer, normalised before or after."""
        if self.pre:
            added: Tensor = x + self.dropout(part(norm(x)))
            return added
        summed: Tensor = norm(x + self.dropout(part(x)))
        return summed


def _build_attention(attention: Blueprint[Attention], dim: int, memory_dim: int) -> Attention:
    """An attention whose answer can be added to what asked, for all positions at once."""
    built = attention.build(query_dim=dim, key_dim=memory_dim)
    built.forbid_sequential("a Transformer")
    if built.output_dim != dim:
        raise WidthConflict(
            "a Transformer adds what attention answers to what asked; set project: qkv",
            asked=dim,
            answered=built.output_dim,
        )
    return built


def build_position(
    position: Blueprint[Position] | None, block: Attention, dim: int, *, causal: bool
) -> Position | None:
    """The position that all blocks share, refused if their scorer would not understand it."""
    if position is None:
        return None
    built = position.build(dim=dim, heads=block.heads, head_dim=block.query_dim, causal=causal)
    block.forbid_rotary(built)
    return built
