"""A call of a Transformer block whose residual sums and norms are one kernel each.

Notation: B batch, T positions, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn

from zoo.acceleration import plain_class
from zoo.plugin import Attention, Mask, Position
from zoo_fast.active_dropout import active_p
from zoo_fast.attention.fused_attention import (
    merged_context,
    why_not_additive,
    why_not_inner_product,
)
from zoo_fast.attention.joint_linear import split_bias
from zoo_fast.transformer.feed_forward import hidden_layer
from zoo_fast.transformer.residual import draw_seeds, residual_before_norm, residual_norm
from zoo_transformer.block import Block
from zoo_transformer.feed_forward import FeedForward

UpdateCache = Callable[[dict[str, Tensor]], Mapping[str, Tensor]]
Source = Tensor | Mapping[str, Tensor] | None


def run_stack(calls: Sequence[FusedCall], x: Tensor) -> Tensor:
    """Process x [B, T, D] in blocks, one after the other."""
    if calls[0].block.place == "post":
        residual = x
        for call in calls:
            x, residual = call.norms_after(x, residual)
        return x
    normed = calls[0].block.attention_norm(x)
    following = [*(call.block.attention_norm for call in calls[1:]), None]
    for call, norm in zip(calls, following, strict=True):
        normed, x = call.norms_before(normed, x, norm)
    return x


class FusedCall:
    """A call of a block without its input, for texts of a length."""

    def __init__(
        self,
        block: Block,
        mask: Mask,
        position: Position | None,
        offset: int | Tensor = 0,
        update_cache: UpdateCache | None = None,
        memory: Source = None,
        memory_mask: Mask | None = None,
        *,
        length: int,
    ) -> None:
        self.block, self.offset = block, offset
        self.mask, self.position = block.restrict(mask), block.select_position(position, length)
        self.update_cache, self.memory, self.memory_mask = update_cache, memory, memory_mask

    def norms_after(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """Process x [B, T, D]; residual is the same again. The output is returned twice, too."""
        for sublayer, norm, seed in zip(
            self._sublayers(), self._norms(), self._seeds(x), strict=True
        ):
            y, bias = sublayer(x)
            x, residual = residual_norm(residual, y, self.block.dropout, norm, bias, seed)
        return x, residual

    def norms_before(
        self, normed: Tensor, x: Tensor, following: nn.Module | None
    ) -> tuple[Tensor, Tensor]:
        """Process x [B, T, D], of which the first norm is given.

        Args:
            following: the norm of the next block; None for the last block.

        Returns:
            The following norm of the output, and the output; without it, the output twice.
        """
        norms, dropout = [*self._norms()[1:], following], self.block.dropout
        for sublayer, norm, seed in zip(self._sublayers(), norms, self._seeds(x), strict=True):
            y, bias = sublayer(normed)
            if norm is None:
                x = x + dropout(y if bias is None else y + bias)
                normed = x
            else:
                normed, x = residual_before_norm(x, y, dropout, norm, bias, seed)
        return normed, x

    def _sublayers(self) -> list[Callable[[Tensor], tuple[Tensor, Tensor | None]]]:
        """The sublayers, which return an output and a bias that is not yet added to it."""
        cross = [] if self.memory is None else [self._attend_memory]
        return [self._attend, *cross, self._feed_forward]

    def _norms(self) -> list[nn.Module]:
        block = self.block
        assert block.feed_forward_norm is not None
        cross = [] if self.memory is None else [block.cross_norm]
        return [block.attention_norm, *cross, block.feed_forward_norm]

    def _seeds(self, x: Tensor) -> Sequence[Tensor | None]:
        """Draw the random seeds of dropout, if there is any."""
        count = len(self._norms())
        return draw_seeds(count, x) if active_p(self.block.dropout) else [None] * count

    def _attend(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        attention = self.block.attention
        states: Tensor | Mapping[str, Tensor] = x
        if self.update_cache is not None:
            prepared = attention.prepare(x, position=self.position, offset=self.offset)
            states = self.update_cache(prepared)
        return _attend(attention, x, states, self.mask, self.position, self.offset)

    def _attend_memory(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        assert self.memory is not None
        return _attend(self.block.cross, x, self.memory, self.memory_mask, None, self.offset)

    def _feed_forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        network = self.block.feed_forward
        if plain_class(network) is not FeedForward:
            return network(x), None
        return split_bias(hidden_layer(network, x), network.down)


def _attend(
    attention: Attention,
    query: Tensor,
    memory: Tensor | Mapping[str, Tensor],
    mask: Mask | None,
    position: Position | None,
    offset: int | Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Return the context [B, T, D] and a bias that is not yet added to it."""
    if _is_known(attention):
        merged = merged_context(attention, query, memory, mask, position=position, offset=offset)
        if merged is not None:
            return split_bias(merged, attention.out)
    return attention(query, memory, mask, position=position, offset=offset).context, None


def _is_known(attention: Attention) -> bool:
    if plain_class(attention) is not Attention or attention.project == "none":
        return False
    return why_not_inner_product(attention) is None or why_not_additive(attention) is None
