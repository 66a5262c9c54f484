"""Transformer encoder."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import (
    Attention,
    Blueprint,
    Encoder,
    FromParent,
    Mask,
    Memory,
    Position,
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


class TransformerEncoder(Encoder):
    r"""Transformer encoder: stacked self-attention and feed-forward blocks.

    .. math:: x \leftarrow \mathrm{LN}(x + \mathrm{attend}(x, x)), \quad
        x \leftarrow \mathrm{LN}(x + \mathrm{FFN}(x))

    Paper: Vaswani et al. 2017, section 3.1; Xiong et al. 2020 for place 'pre' of the norms; Lan et
    al. 2020, section 3.1 (ALBERT), for narrower inputs and shared layers.

    Args:
        input_dim: width of the inputs.
        layers: number of blocks.
        attention: self-attention of each block.
        feed_forward: feed-forward network of each block.
        norm: kind and place of the norms; LayerNorm after each residual sum if not set.
        position: position encoding; none if not set.
        dropout: dropout probability of the inputs and of each sublayer's output.
        dim: width of the states, D. Inputs of another width are projected, after positions and
            norm; input_dim if not set.
        share_layers: whether all layers use one block. Recording returns one call per layer.
        causal: whether a position attends only to itself and earlier positions, as in the text
            encoder of CLIP.
        pattern: kinds of the layers, repeated; all layers are the same if not set.
        sublayers: 'sequential', or attention and feed-forward network 'parallel' to each other,
            each with its norm, or 'parallel-shared', with the same norm.
        layer_scale: initial value of learned factors of each sublayer's output (Touvron et al.
            2021, CaiT); none if not set. It requires norms of place 'pre' or 'post'.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, D]; the summary is their mean.
    """

    name: ClassVar[str] = "transformer"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"
    input_parts: ClassVar[tuple[str, ...]] = ("embedding_norm", "map")

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        layers: Annotated[int, Field(ge=1, le=256)],
        attention: Blueprint[Attention],
        feed_forward: Blueprint[FeedForward],
        norm: Blueprint[Norm] | None = None,
        position: Blueprint[Position] | None = None,
        dim: Annotated[int, Field(ge=1)] | None = None,
        share_layers: bool = False,
        causal: bool = False,
        options: StackOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__()
        dim = input_dim if dim is None else dim
        self.input_dim, self.layers, self.share_layers = input_dim, layers, share_layers
        self.causal = causal
        self.residual_repeats = layers if share_layers else 1
        self.output_dim = self.summary_dim = dim
        self.carry = {}
        norms = norm.build() if norm else Norm()
        if share_layers and len(options.pattern) > 1:
            raise ZooError("share_layers requires layers of one kind; shorten 'pattern'")
        if share_layers and not norms.first:
            raise ZooError("share_layers requires norms of all layers; remove 'first: false'")
        self.blocks = build_blocks(
            1 if share_layers else layers,
            norms,
            options,
            lambda kind: Block(
                dim=dim,
                memory_dim=0,
                attention=attention,
                cross=None,
                feed_forward=feed_forward,
                norm=norms,
                kind=kind,
                causal=causal,
                options=options,
            ),
        )
        self.position = build_position(position, layer_list(self.blocks), input_dim, causal=causal)
        self.embedding_norm = norms.build(input_dim) if norms.embedding else None
        self.final_norm = norms.build(dim) if norms.final else None
        self.map = None if dim == input_dim else nn.Linear(input_dim, dim)
        self.dropout = nn.Dropout(options.dropout)

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        x = inputs if self.position is None else self.position("add", inputs)
        x = self.dropout(x if self.embedding_norm is None else self.embedding_norm(x))
        x = x if self.map is None else self.map(x)
        bias = position_bias(self.position, x, x)
        x = self.run_blocks(x, Mask(keys=mask, causal=self.causal, bias=bias))
        x = x if self.final_norm is None else self.final_norm(x)
        states = x.masked_fill(~mask[..., None], 0.0)
        summary = states.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)
        return Memory(states, mask, summary)

    def run_blocks(self, x: Tensor, mask: Mask) -> Tensor:
        """Process x [B, S, D] in all blocks."""
        for index in range(self.layers):
            x = self.blocks[0 if self.share_layers else index](x, mask, position=self.position)
        return x
