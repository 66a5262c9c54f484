"""Transformer block: self-attention, optional cross-attention, feed-forward.

Notation: B batch, T positions, S keys, D width.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Attention, Blueprint, Mask, Position, WidthConflict, build_layers
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.layer_kind import (
    DEFAULT_OPTIONS,
    LayerKind,
    StackOptions,
    require_rotary,
)
from zoo_transformer.layer_scale import scale_output
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
        kind: window and position of self-attention, and another feed-forward network.
        causal: whether self-attention is causal.
        options: dropout probability of each sublayer's output, and whether attention and
            feed-forward network are computed in parallel, x + attend(norm(x)) + FFN(norm(x)), with
            one norm each ('parallel', Black et al. 2022) or a shared one ('parallel-shared', Wang
            and Komatsuzaki 2021), and the initial factors of each sublayer's output.

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
        kind: LayerKind | None = None,
        causal: bool = False,
        options: StackOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__()
        kind, self.sublayers = kind or LayerKind(), options.sublayers
        if self.sublayers != "sequential" and (norm.place != "pre" or cross is not None):
            raise ZooError("parallel sublayers require norms of place 'pre' and no source")
        if options.layer_scale is not None and norm.place not in ("pre", "post"):
            raise ZooError(
                f"layer_scale requires norms of place 'pre' or 'post', not '{norm.place}'"
            )
        self.dim, self.memory_dim, self.place = dim, memory_dim, norm.place
        self.attention = _build_attention(attention, dim, dim)
        self.attention_norm = norm.build(dim)
        self.attention_output_norm = norm.build_output(dim)
        self.attention_scale = options.build_scale(dim)
        if cross is not None:
            self.cross = _build_attention(cross, dim, memory_dim)
            self.cross_norm = norm.build(dim)
            self.cross_output_norm = norm.build_output(dim)
            self.cross_scale = options.build_scale(dim)
        self.feed_forward = (kind.feed_forward or feed_forward).build(dim=dim)
        self.feed_forward_norm = norm.build(dim) if self.sublayers != "parallel-shared" else None
        self.feed_forward_output_norm = norm.build_output(dim)
        self.feed_forward_scale = options.build_scale(dim)
        self.dropout = nn.Dropout(options.dropout)
        self.window, self.no_position = kind.window, kind.no_position
        self.position = kind.build_position(self.attention, causal=causal)

    def forward(
        self,
        x: Tensor,
        mask: Mask,
        *,
        position: Position | None,
        offset: int | Tensor = 0,
        length: int | None = None,
        update_cache: Callable[[dict[str, Tensor]], Mapping[str, Tensor]] | None = None,
        memory: Tensor | Mapping[str, Tensor] | None = None,
        memory_mask: Mask | None = None,
    ) -> Tensor:
        """Process x [B, T, D].

        Args:
            mask: the positions that each position attends to.
            position: applied in self-attention.
            offset: position of x[:, 0].
            length: length of the texts of which x is a part; T if not set.
            update_cache: takes the keys and values of x, returns those of all positions so far.
            memory: states [B, S, memory_dim], or the output of `cross.prepare`.
            memory_mask: the states of the memory to attend to.
        """
        mask = self.restrict(mask)
        position = self.select_position(position, x.shape[1] if length is None else length)

        def attend(y: Tensor) -> Tensor:
            states: Tensor | Mapping[str, Tensor] = y
            if update_cache is not None:
                states = update_cache(self.attention.prepare(y, position=position, offset=offset))
            context: Tensor
            context = self.attention(y, states, mask, position=position, offset=offset).context
            return scale_output(self.attention_scale, context)

        def attend_memory(y: Tensor) -> Tensor:
            context: Tensor = self.cross(y, memory, memory_mask, offset=offset).context
            return scale_output(self.cross_scale, context)

        if self.sublayers != "sequential":
            return self._parallel(x, attend)
        x = self.residual(x, attend, self.attention_norm, self.attention_output_norm)
        if memory is not None:
            x = self.residual(x, attend_memory, self.cross_norm, self.cross_output_norm)
        assert self.feed_forward_norm is not None
        return self.residual(x, self._feed, self.feed_forward_norm, self.feed_forward_output_norm)

    def extra_repr(self) -> str:
        names = ("dim", "memory_dim", "place", "sublayers", "window")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    def restrict(self, mask: Mask) -> Mask:
        """Return the mask with the window of this layer."""
        return mask if self.window is None else mask.with_window(self.window)

    def select_position(self, position: Position | None, length: int) -> Position | None:
        """Return the position of this layer for texts of a length, given that of the stack."""
        if self.no_position:
            return None
        selected = position if self.position is None else self.position
        return None if selected is None else selected.for_length(length)

    def _feed(self, x: Tensor) -> Tensor:
        return scale_output(self.feed_forward_scale, self.feed_forward(x))

    def _parallel(self, x: Tensor, attend: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the outputs of both sublayers to x."""
        normed = self.attention_norm(x)
        second = normed if self.feed_forward_norm is None else self.feed_forward_norm(x)
        result: Tensor = x + self.dropout(attend(normed)) + self.dropout(self._feed(second))
        return result

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


def build_blocks(
    count: int, norm: Norm, options: StackOptions, build: Callable[[LayerKind], Block]
) -> nn.ModuleList:
    """Build the blocks of a stack, each of its kind."""
    kinds = options.layer_kinds(count)
    if len(options.pattern) <= 1:
        blocks = build_layers(count, lambda: build(kinds[0]))
    else:
        blocks = nn.ModuleList(build(kind) for kind in kinds)
    if not norm.first:
        if options.sublayers != "sequential":
            raise ZooError("norms with first: false require sublayers: sequential")
        layer_list(blocks)[0].attention_norm = nn.Identity()
    return blocks


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
    position: Blueprint[Position] | None, blocks: Sequence[Block], dim: int, *, causal: bool
) -> Position | None:
    """Build the position shared by all blocks; raise ZooError if a block does not support it."""
    if position is None:
        return None
    attention = blocks[0].attention
    built = position.build(
        dim=dim, heads=attention.heads, head_dim=attention.head_dim, causal=causal
    )
    for block in blocks:
        block.attention.set_position(built)
    own = [block.position for block in blocks if block.position is not None]
    if any(block.no_position for block in blocks) or any(each.is_rotary for each in own):
        require_rotary(built)
    if built.has_bias and own:
        raise ZooError(
            f"position '{built.name}' and '{own[0].name}' of a layer both add a bias to the scores"
        )
    return built


def position_bias(
    position: Position | None, queries: Tensor, keys: Tensor, *, offset: int | Tensor = 0
) -> Tensor | None:
    """Compute the bias [H, T, S] for all blocks; queries [..., T, D], keys [..., S, D]."""
    if position is None or not position.has_bias:
        return None
    bias: Tensor | None = position("bias", queries, keys, offset=offset)
    return bias
