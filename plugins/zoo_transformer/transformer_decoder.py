"""Transformer decoder."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import (
    Attention,
    Blueprint,
    Decoder,
    Embedding,
    FromParent,
    Mask,
    Memory,
    Position,
    State,
)
from zoo_transformer.block import (
    Block,
    build_blocks,
    build_position,
    layer_list,
    position_bias,
)
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.layer_kind import DEFAULT_OPTIONS, StackOptions
from zoo_transformer.norm import Norm
from zoo_transformer.output import Output


class TransformerDecoder(Decoder):
    r"""Transformer decoder: stacked causal self-attention, cross-attention and feed-forward blocks.

    .. math:: x \leftarrow \mathrm{LN}(x + \mathrm{attend}(x, x_{\le t})), \quad
        x \leftarrow \mathrm{LN}(x + \mathrm{attend}(x, h)), \quad
        x \leftarrow \mathrm{LN}(x + \mathrm{FFN}(x))

    Paper: Vaswani et al. 2017, section 3.1; Radford et al. 2018 without a source.

    Args:
        embedding: the target embedding.
        memory_dim: width of the encoder's states; 0 without a source.
        layers: number of blocks.
        attention: self-attention of each block.
        cross: cross-attention of each block; the same as attention if not set.
        feed_forward: feed-forward network of each block.
        norm: kind and place of the norms; LayerNorm after each residual sum if not set.
        position: position encoding; none if not set.
        dropout: dropout probability of the embeddings and of each sublayer's output.
        output: output layer; an untied linear layer if not set.
        pattern: kinds of the layers, repeated; all layers are the same if not set.
        sublayers: 'sequential', or attention and feed-forward network 'parallel' to each other,
            each with its norm, or 'parallel-shared', with the same norm.
        layer_scale: initial value of learned factors of each sublayer's output (Touvron et al.
            2021, CaiT); none if not set. It requires norms of place 'pre' or 'post'.

    Shapes:
        tokens [B, n], segments [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "transformer"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"
    supports_segments: ClassVar[bool] = True
    input_parts: ClassVar[tuple[str, ...]] = ("embedding_norm",)

    # Without projections, the source must have the width of the embedding.
    test_params: ClassVar[Mapping[str, Any]] = {
        "attention": {"scorer": "zoo-testing:tiny", "align": "zoo-testing:tiny", "project": "qkv"}
    }

    def __init__(
        self,
        *,
        embedding: FromParent[Embedding],
        memory_dim: FromParent[int],
        layers: Annotated[int, Field(ge=1, le=256)],
        attention: Blueprint[Attention],
        feed_forward: Blueprint[FeedForward],
        cross: Blueprint[Attention] | None = None,
        norm: Blueprint[Norm] | None = None,
        position: Blueprint[Position] | None = None,
        output: Blueprint[Output] | None = None,
        options: StackOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__()
        dim = embedding.dim
        if cross is not None and memory_dim == 0:
            raise ZooError("'cross' is set, but the model has no source; remove 'cross'")
        self.memory_dim, self.layers = memory_dim, layers
        self.embedding = embedding
        norms = norm.build() if norm else Norm()
        self.blocks = build_blocks(
            layers,
            norms,
            options,
            lambda kind: Block(
                dim=dim,
                memory_dim=memory_dim,
                attention=attention,
                cross=(cross or attention) if memory_dim else None,
                feed_forward=feed_forward,
                norm=norms,
                kind=kind,
                causal=True,
                options=options,
            ),
        )
        self.position = build_position(position, layer_list(self.blocks), dim, causal=True)
        own = [self.position, *(block.position for block in layer_list(self.blocks))]
        self.switch_lengths = {n for each in own if each is not None for n in each.switch_lengths}
        self.embedding_norm = norms.build(dim) if norms.embedding else None
        self.final_norm = norms.build(dim) if norms.final else None
        self.dropout = nn.Dropout(options.dropout)
        self.output = output.build(embedding=embedding) if output else Output(embedding=embedding)

    def forward(self, targets: Tensor, memory: Memory, segments: Tensor | None = None) -> Tensor:
        x = self.embed(targets, 0 if segments is None else _restart(segments))
        same = None if segments is None else segments[:, :, None] == segments[:, None, :]
        # Rotations and biases depend on distances, which are the same in a text of a row.
        mask = Mask(causal=True, pairs=same, bias=position_bias(self.position, x, x))
        return self.logits(self.run_blocks(x, mask, memory))

    def start(self, memory: Memory, *, steps: int) -> State:
        self.check_steps(steps)
        B = memory.states.shape[0]
        per_hypothesis: dict[str, Tensor] = {"at": memory.mask.new_zeros(B, dtype=torch.long)}
        per_source: dict[str, Tensor] = {"mask": memory.mask}
        empty = self.embed(memory.mask.new_zeros(B, 1, dtype=torch.long))
        for index, block in enumerate(layer_list(self.blocks)):
            prepared = block.attention.prepare(empty)
            for name, tensor in prepared.items():  # [B, Hkv, steps, *]
                shape = (B, tensor.shape[1], steps, tensor.shape[3])
                per_hypothesis[f"{index}.{name}"] = tensor.new_zeros(shape)
            if self.memory_dim:
                # Every step reads them, and the heads of a projection are strided.
                for name, tensor in block.cross.prepare(memory.states).items():
                    per_source[f"{index}.{name}"] = tensor.contiguous()
        return State(per_hypothesis, per_source)

    def max_steps(self, length: int, steps: int) -> int:
        return min([steps, *(n for n in self.switch_lengths if n >= length)])

    def restart(self, state: State, *, steps: int) -> State:
        self.check_steps(steps)
        before = state.per_hypothesis
        rows = {
            name: cache.new_zeros(*cache.shape[:2], steps, cache.shape[3])
            for name, cache in before.items()
            if name != "at"
        }
        return State({"at": torch.zeros_like(before["at"]), **rows}, state.per_source)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        # All rows have the same offset. On the CPU it is read, so that attention covers the filled
        # part of the cache only; on a GPU that would synchronise, so the rest is masked.
        at = state.per_hypothesis["at"]
        x, state = self.step_blocks(tokens, state, int(at[0]) if at.device.type == "cpu" else at[0])
        return self.logits(x), state

    def process_prompt(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        x, state = self.step_blocks(tokens, state, 0)
        return self.logits(x[:, -1:]), state

    def step_blocks(
        self, tokens: Tensor, state: State, offset: int | Tensor
    ) -> tuple[Tensor, State]:
        """Compute the output of the last block [B, n, D] and the updated state."""
        before, per_source = state.per_hypothesis, state.per_source
        x, T, length = self.embed(tokens, offset), tokens.shape[1], before["0.keys"].shape[2]
        keys = _filled(before["0.keys"], offset, T)
        bias = position_bias(self.position, x, keys, offset=offset)
        mask = Mask(causal=True, offset=offset, bias=bias)
        after = {"at": before["at"] + T}
        for index, block in enumerate(layer_list(self.blocks)):
            source = None
            if self.memory_dim:
                source = {name: per_source[f"{index}.{name}"] for name in ("keys", "values")}
            x = block(
                x,
                mask,
                position=self.position,
                offset=offset,
                length=length,
                update_cache=partial(_update_cache, before, after, index, offset),
                memory=source,
                memory_mask=Mask(keys=per_source["mask"]),
            )
        return x, state.updated(after)

    def embed(self, tokens: Tensor, offset: int | Tensor = 0) -> Tensor:
        """Compute the input of the first block: tokens [B, T] -> [B, T, D]."""
        x: Tensor = self.embedding(tokens)
        if self.position is not None:
            x = self.position("add", x, offset=offset)
        dropped: Tensor = self.dropout(x if self.embedding_norm is None else self.embedding_norm(x))
        return dropped

    def run_blocks(self, x: Tensor, mask: Mask, memory: Memory) -> Tensor:
        """Process x [B, T, D] in all blocks."""
        states = memory.states if self.memory_dim else None
        memory_mask = Mask(keys=memory.mask)
        for block in self.blocks:
            x = block(x, mask, position=self.position, memory=states, memory_mask=memory_mask)
        return x

    def logits(self, x: Tensor) -> Tensor:
        """Compute the logits of the output of the last block: [B, T, D] -> [B, T, V]."""
        logits: Tensor = self.output(x if self.final_norm is None else self.final_norm(x))
        return logits

    def check_steps(self, steps: int) -> None:
        """Raise ZooError if the position encoding has fewer positions."""
        max_positions = None if self.position is None else self.position.max_positions
        if max_positions is not None and steps > max_positions:
            raise ZooError(
                f"{steps} tokens exceed the maximum of {max_positions} positions; generate fewer "
                "tokens or shorten the prompt"
            )


def _restart(segments: Tensor) -> Tensor:
    """Return the offset [B, T] with which the positions of each segment start at 0."""
    begins = F.pad(segments[:, 1:] != segments[:, :-1], (1, 0), value=True)
    index = torch.arange(segments.shape[1], device=segments.device)
    return -torch.where(begins, index, 0).cummax(dim=1).values


def _update_cache(
    before: Mapping[str, Tensor],
    after: dict[str, Tensor],
    index: int,
    offset: int | Tensor,
    new: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    """Write the new keys and values of a block at the offset; return all up to them."""
    cached = {}
    for name, tensor in new.items():
        cache, T = before[f"{index}.{name}"], tensor.shape[2]
        # Without gradients the cache is updated in place: positions beyond the offset are unused.
        if isinstance(offset, int) and not torch.is_grad_enabled():
            cache.narrow(2, offset, T).copy_(tensor)
            full = cache
        else:
            positions = torch.arange(T, device=tensor.device) + offset
            copy = cache.index_copy if torch.is_grad_enabled() else cache.index_copy_
            full = copy(2, positions, tensor)
        after[f"{index}.{name}"] = full
        cached[name] = _filled(full, offset, T)
    return cached


def _filled(cache: Tensor, offset: int | Tensor, T: int) -> Tensor:
    """Return the filled part of a cache [B, H, steps, *] after T steps, or all of it if the offset
    is not known on this side."""
    return cache.narrow(2, 0, offset + T) if isinstance(offset, int) else cache
