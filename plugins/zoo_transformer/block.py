"""Transformer block: self-attention, optional cross-attention, feed-forward.

Notation: B batch, T positions, S keys, D width.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

from torch import Tensor, nn

from zoo.plugin import Attention, Blueprint, Mask, Position, WidthConflict
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.norm import Norm


class Block(nn.Module):
    """Transformer block, with a residual connection and a norm around each sublayer.

    Args:
        dim: width of the states.
        memory_dim: width of the memory; 0 without a memory.
        attention: self-attention.
        cross: cross-attention; None without a memory.
        feed_forward: feed-forward network.
        norm: kind and place of the norms.
        dropout: dropout probability of each sublayer's output.

    Shapes:
        [B, T, dim] -> [B, T, dim].
    """

    residual_layers: ClassVar[tuple[str, ...]] = ("attention.out", "cross.out", "feed_forward.down")

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
        self.dim, self.memory_dim, self.place = dim, memory_dim, norm.place
        self.attention = _build_attention(attention, dim, dim)
        self.attention_norm = norm.build(dim)
        self.attention_output_norm = norm.build_output(dim)
        if cross is not None:
            self.cross = _build_attention(cross, dim, memory_dim)
            self.cross_norm = norm.build(dim)
            self.cross_output_norm = norm.build_output(dim)
        self.feed_forward = feed_forward.build(dim=dim)
        self.feed_forward_norm = norm.build(dim)
        self.feed_forward_output_norm = norm.build_output(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        mask: Mask,
        *,
        position: Position | None,
        offset: int | Tensor = 0,
        update_cache: Callable[[dict[str, Tensor]], Mapping[str, Tensor]] | None = None,
        memory: Tensor | Mapping[str, Tensor] | None = None,
        memory_mask: Mask | None = None,
    ) -> Tensor:
        """Process x [B, T, D].

        Args:
            mask: the positions that each position attends to.
            position: applied in self-attention.
            offset: position of x[:, 0].
            update_cache: takes the keys and values of x, returns those of all positions so far.
            memory: states [B, S, memory_dim], or the output of `cross.prepare`.
            memory_mask: the states of the memory to attend to.
        """

        def attend(y: Tensor) -> Tensor:
            states: Tensor | Mapping[str, Tensor] = y
            if update_cache is not None:
                states = update_cache(self.attention.prepare(y, position=position, offset=offset))
            context: Tensor
            context = self.attention(y, states, mask, position=position, offset=offset).context
            return context

        def attend_memory(y: Tensor) -> Tensor:
            context: Tensor = self.cross(y, memory, memory_mask, offset=offset).context
            return context

        x = self.residual(x, attend, self.attention_norm, self.attention_output_norm)
        if memory is not None:
            x = self.residual(x, attend_memory, self.cross_norm, self.cross_output_norm)
        return self.residual(
            x, self.feed_forward, self.feed_forward_norm, self.feed_forward_output_norm
        )

    def extra_repr(self) -> str:
        return f"dim={self.dim}, memory_dim={self.memory_dim}, place={self.place!r}"

    def residual(
        self,
        x: Tensor,
        sublayer: Callable[[Tensor], Tensor],
        norm: nn.Module,
        output_norm: nn.Module | None = None,
    ) -> Tensor:
        """Add the sublayer's output to x, with the norms at the place of the block."""
        result: Tensor
        if self.place == "pre":
            result = x + self.dropout(sublayer(norm(x)))
        elif self.place == "output":
            result = x + self.dropout(norm(sublayer(x)))
        elif output_norm is not None:
            result = x + self.dropout(output_norm(sublayer(norm(x))))
        else:
            result = norm(x + self.dropout(sublayer(x)))
        return result


def layer_list(blocks: nn.ModuleList) -> list[Block]:
    """Return the blocks of a stack."""
    return list(blocks)  # type: ignore[arg-type]


def _build_attention(attention: Blueprint[Attention], dim: int, memory_dim: int) -> Attention:
    """Build an attention whose output can be added to its queries."""
    built = attention.build(query_dim=dim, key_dim=memory_dim)
    built.forbid_sequential("a Transformer")
    if built.output_dim != dim:
        raise WidthConflict(
            "a Transformer adds the output of attention to its queries; set project: qkv",
            dim=dim,
            output_dim=built.output_dim,
        )
    return built


def build_position(
    position: Blueprint[Position] | None, attention: Attention, dim: int, *, causal: bool
) -> Position | None:
    """Build the position shared by all blocks; raise ZooError if the scorer does not support it."""
    if position is None:
        return None
    built = position.build(
        dim=dim, heads=attention.heads, head_dim=attention.head_dim, causal=causal
    )
    attention.forbid_rotary(built)
    return built


def position_bias(
    position: Position | None, queries: Tensor, keys: Tensor, *, offset: int | Tensor = 0
) -> Tensor | None:
    """Compute the bias [H, T, S] for all blocks; queries [..., T, D], keys [..., S, D]."""
    if position is None or not position.has_bias:
        return None
    bias: Tensor | None = position("bias", queries, keys, offset=offset)
    return bias
