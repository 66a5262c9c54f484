"""Transformer decoder, with or without a source to look at."""

from collections.abc import Mapping
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
)
from zoo_transformer.block import Block, build_position
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.norm import Norm
from zoo_transformer.output import Output


class TransformerDecoder(Decoder):
    r"""Lets every token look at those before it, and at the source where there is one.

    .. math:: x \leftarrow \mathrm{LN}(x + \mathrm{attend}(x, x_{\le t})), \quad
        x \leftarrow \mathrm{LN}(x + \mathrm{attend}(x, h)), \quad
        x \leftarrow \mathrm{LN}(x + \mathrm{FFN}(x))

    Paper: Vaswani et al. 2017, section 3.1; without a source as in Radford et al. 2018.

    Args:
        embedding: the target embedding.
        memory_dim: width of the encoder's states; 0 where there is no source.
        layers: how many blocks.
        attention: how tokens look at those before them.
        cross: how they look at the source; like attention if not set.
        feed_forward: what is done with each position after that.
        norm: which normalisation, and where; LayerNorm after each sum if not set.
        position: how positions are told apart; not at all if not set.
        dropout: on the embedded tokens and on each part's answer.
        output: how states become logits; a linear map of its own if not set.

    Shapes:
        tokens [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "transformer"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"

    # One head without projections cannot look at a source of another width.
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
            raise ZooError("there is no source to look at, so 'cross' has no meaning; leave it out")
        self.embedding = embedding
        norms = norm.build() if norm else Norm()
        self.blocks = nn.ModuleList(
            Block(
                dim=dim,
                memory_dim=memory_dim,
                attention=attention,
                cross=(cross or attention) if memory_dim else None,
                feed_forward=feed_forward,
                norm=norms,
                dropout=dropout,
            )
            for _ in range(layers)
        )
        self.position = build_position(position, self._blocks()[0].attention, dim, causal=True)
        self.embedding_norm = norms.make(dim) if norms.embedding else None
        self.final_norm = norms.make(dim) if norms.pre else None
        self.dropout = nn.Dropout(dropout)
        self.output = output.build(embedding=embedding) if output else Output(embedding=embedding)

    def forward(self, targets: Tensor, memory: Memory) -> Tensor:
        x = self._embed(targets, 0)
        source_mask = Mask(keys=memory.mask)
        for block in self._blocks():
            source = block.cross.prepare(memory.states) if hasattr(block, "cross") else None
            x = block(
                x,
                Mask(causal=True),
                position=self.position,
                memory=source,
                memory_mask=source_mask,
            )
        return self._logits(x)

    def start(self, memory: Memory, *, steps: int) -> State:
        longest = None if self.position is None else self.position.max_positions
        if longest is not None and steps > longest:
            raise ZooError(f"{steps} tokens are asked for, but the context holds {longest}")
        B = memory.states.shape[0]
        per_hypothesis: dict[str, Tensor] = {"at": memory.mask.new_zeros(B, dtype=torch.long)}
        per_source: dict[str, Tensor] = {"mask": memory.mask}
        empty = self._embed(memory.mask.new_zeros(B, 1, dtype=torch.long), 0)
        for index, block in enumerate(self._blocks()):
            one = block.attention.prepare(empty)
            for name, tensor in one.items():  # [B, Hkv, steps, *]
                shape = (B, tensor.shape[1], steps, tensor.shape[3])
                per_hypothesis[f"{index}.{name}"] = tensor.new_zeros(shape)
            if hasattr(block, "cross"):
                source = block.cross.prepare(memory.states)
                per_source |= {f"{index}.{name}": tensor for name, tensor in source.items()}
        return State(per_hypothesis, per_source)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        at = state.per_hypothesis["at"]
        # All rows stand at the same place. A CPU may be asked for it, and need not look further;
        # a GPU is not, and looks at the whole cache with what is beyond masked.
        offset = int(at[0]) if at.device.type == "cpu" else at[0]
        x = self._embed(tokens, offset)
        per_hypothesis = {"at": at + tokens.shape[1]}
        mask, source_mask = Mask(causal=True, offset=offset), Mask(keys=state.per_source["mask"])
        for index, block in enumerate(self._blocks()):
            source = (
                {n: state.per_source[f"{index}.{n}"] for n in ("keys", "values")}
                if hasattr(block, "cross")
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
    """The keys and values of a block so far, with the new ones put in at the offset."""
    cached = {}
    for name, tensor in new.items():
        cache = before[f"{index}.{name}"]
        places = torch.arange(tensor.shape[2], device=tensor.device) + offset
        # Without gradients the cache is filled in place: what lies beyond `at` is nobody's.
        put = cache.index_copy if torch.is_grad_enabled() else cache.index_copy_
        full = after[f"{index}.{name}"] = put(2, places, tensor)
        cached[name] = full[:, :, : offset + tensor.shape[2]] if isinstance(offset, int) else full
    return cached
