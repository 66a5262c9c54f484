"""Transformer decoder."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import torch
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
    build_layers,
    prepare_memories,
)
from zoo_transformer.block import Block, build_position, position_bias
from zoo_transformer.cpu_step import run_blocks, weights_of_cpu_step
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.fused_step import (
    from_reference,
    is_fused,
    start_fused,
    to_reference,
    why_not_fused_step,
)
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

    Shapes:
        tokens [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "transformer"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"

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
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        output: Blueprint[Output] | None = None,
    ) -> None:
        super().__init__()
        dim = embedding.dim
        if cross is not None and memory_dim == 0:
            raise ZooError("'cross' is set, but the model has no source; remove 'cross'")
        self.memory_dim, self.layers = memory_dim, layers
        self.embedding = embedding
        norms = norm.build() if norm else Norm()
        self.blocks = build_layers(
            layers,
            lambda: Block(
                dim=dim,
                memory_dim=memory_dim,
                attention=attention,
                cross=(cross or attention) if memory_dim else None,
                feed_forward=feed_forward,
                norm=norms,
                dropout=dropout,
            ),
        )
        self.position = build_position(position, self._blocks()[0].attention, dim, causal=True)
        self.embedding_norm = norms.build(dim) if norms.embedding else None
        self.final_norm = norms.build(dim) if norms.final else None
        self.dropout = nn.Dropout(dropout)
        self.output = output.build(embedding=embedding) if output else Output(embedding=embedding)

    def forward(self, targets: Tensor, memory: Memory) -> Tensor:
        x = self._embed(targets, 0)
        mask = Mask(causal=True, bias=position_bias(self.position, x, x))
        source_mask, blocks = Mask(keys=memory.mask), self._blocks()
        memories: Sequence[Tensor | Mapping[str, Tensor] | None] = [None] * len(blocks)
        if self.memory_dim:
            memories = prepare_memories([block.cross for block in blocks], memory.states)
        for block, source in zip(blocks, memories, strict=True):
            x = block(x, mask, position=self.position, memory=source, memory_mask=source_mask)
        return self._logits(x)

    def start(self, memory: Memory, *, steps: int) -> State:
        max_positions = None if self.position is None else self.position.max_positions
        if max_positions is not None and steps > max_positions:
            raise ZooError(
                f"{steps} tokens exceed the maximum of {max_positions} positions; generate fewer "
                "tokens or shorten the prompt"
            )
        if why_not_fused_step(self, self._blocks(), self.position) is None:
            dtype = next(self.parameters()).dtype
            return start_fused(self._blocks(), self.position, memory, steps=steps, dtype=dtype)
        B = memory.states.shape[0]
        per_hypothesis: dict[str, Tensor] = {"at": memory.mask.new_zeros(B, dtype=torch.long)}
        per_source: dict[str, Tensor] = {"mask": memory.mask}
        empty = self._embed(memory.mask.new_zeros(B, 1, dtype=torch.long), 0)
        for index, block in enumerate(self._blocks()):
            prepared = block.attention.prepare(empty)
            for name, tensor in prepared.items():  # [B, Hkv, steps, *]
                shape = (B, tensor.shape[1], steps, tensor.shape[3])
                per_hypothesis[f"{index}.{name}"] = tensor.new_zeros(shape)
            if self.memory_dim:
                source = block.cross.prepare(memory.states)
                per_source |= {f"{index}.{name}": tensor for name, tensor in source.items()}
        return State(per_hypothesis, per_source)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        if not is_fused(state):
            return self._reference_step(tokens, state)
        if tokens.shape[1] == 1 and why_not_fused_step(self, self._blocks(), self.position) is None:
            return self._fused_step(tokens, state)
        logits, updated = self._reference_step(tokens, to_reference(state))
        return logits, from_reference(updated, state)

    def _fused_step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process one token [B, 1] in Triton kernels, which update the caches in place."""
        from zoo_fast.tokens.token_lookup import lookup_table
        from zoo_transformer.kernels.decode_step import run_blocks
        from zoo_transformer.kernels.embed import embed

        at, added = state.per_hypothesis["at"], state.tables.get("added")
        lookup = lookup_table(self.embedding)
        if lookup is not None:
            x, next_at = embed(tokens[:, 0], at, *lookup, added)
        else:
            x, next_at = self.embedding(tokens)[:, 0], at + 1
            x = x if added is None else x + added.index_select(0, at)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        matrix = self.output.matrix()
        x = run_blocks(x, state, self._blocks(), self.position, self.final_norm, matrix)
        logits: Tensor = x if len(x) == 1 and matrix is not None else self.output(x)
        return logits[:, None], state.updated({**state.per_hypothesis, "at": next_at})

    def _reference_step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        at = state.per_hypothesis["at"]
        # All rows have the same offset. On the CPU it is read, so that attention covers the filled
        # part of the cache only; on a GPU that would synchronise, so the rest is masked.
        offset = int(at[0]) if at.device.type == "cpu" else at[0]
        if self.position is None or torch.compiler.is_compiling():
            return self._step(tokens, state, offset)
        with self.position.one_pass():
            return self._step(tokens, state, offset)

    def _step(self, tokens: Tensor, state: State, offset: int | Tensor) -> tuple[Tensor, State]:
        x, T = self._embed(tokens, offset), tokens.shape[1]
        per_hypothesis = {"at": state.per_hypothesis["at"] + T}
        if T == 1 and isinstance(offset, int):
            packed = weights_of_cpu_step(self, self._blocks(), self.position)
            if packed is not None:
                x = run_blocks(x, state, self._blocks(), self.position, offset, packed)
                return self._logits(x), state.updated({**state.per_hypothesis, **per_hypothesis})
        keys = _filled(state.per_hypothesis["0.keys"], offset, T)
        bias = position_bias(self.position, x, keys, offset=offset)
        mask = Mask(causal=True, offset=offset, bias=bias)
        source_mask = Mask(keys=state.per_source["mask"])
        for index, block in enumerate(self._blocks()):
            source = (
                {n: state.per_source[f"{index}.{n}"] for n in ("keys", "values")}
                if self.memory_dim
                else None
            )
            update_cache = partial(
                _update_cache, state.per_hypothesis, per_hypothesis, index, offset
            )
            x = block(
                x,
                mask,
                position=self.position,
                offset=offset,
                update_cache=update_cache,
                memory=source,
                memory_mask=source_mask,
            )
        return self._logits(x), state.updated(per_hypothesis)

    def _embed(self, tokens: Tensor, offset: int | Tensor) -> Tensor:
        x: Tensor = self.embedding(tokens)
        if self.position is not None:
            x = self.position("add", x, offset=offset)
        dropped: Tensor = self.dropout(x if self.embedding_norm is None else self.embedding_norm(x))
        return dropped

    def _logits(self, x: Tensor) -> Tensor:
        logits: Tensor = self.output(x if self.final_norm is None else self.final_norm(x))
        return logits

    def _blocks(self) -> list[Block]:
        return list(self.blocks)  # type: ignore[arg-type]


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
