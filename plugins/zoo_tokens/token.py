"""Token embedding."""

from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Embedding, TensorSchema


class Token(Embedding):
    r"""Learned token embedding, optionally scaled and with segment embeddings.

    .. math::
        x_t = \lambda W E_{y_t} + S_{s_t}, \qquad \lambda = \sqrt{d} \text{ if scaled, else } 1

    W is the identity without inner_dim.

    Paper: Vaswani et al. 2017, section 3.4 (shared table, scale); Devlin et al. 2019, figure 2
    (segments); Lan et al. 2020, section 3.1 (inner_dim).

    Args:
        vocab: vocabulary size.
        dim: width of the embedding, d.
        padding: token ID of padding, whose embedding is zero and receives no gradient; None if
            the vocabulary has no padding token.
        scaled: multiply by the square root of d, as in the Transformer.
        std: standard deviation of the initial weights; not used if the initialiser of the spec
            samples embeddings.
        segments: number of segments; 0 for none.
        inner_dim: width of the table, projected to d without a bias; d if not set.
        train_padding: whether the padding token has an embedding that is trained, as in models
            that use it also as the start token.
        padding_ends: whether the padding token also ends every text, as in causal encoders: the
            first one after another token, or of a text, is valid.
        output_map: whether states are projected to inner_dim by separate weights in `unembed`
            (OPT), not by W transposed.

    Shapes:
        token IDs [B, S], all in segment 0, or token and segment IDs [B, S, 2] -> [B, S, dim].
    """

    name: ClassVar[str] = "token"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"

    vocab: int

    def __init__(
        self,
        *,
        vocab: Annotated[int, Field(ge=2)],
        dim: Annotated[int, Field(ge=1)],
        padding: Annotated[int, Field(ge=0)] | None = 0,
        scaled: bool = False,
        std: Annotated[float, Field(gt=0)] = 1.0,
        segments: Annotated[int, Field(ge=0)] = 0,
        inner_dim: Annotated[int, Field(ge=1)] | None = None,
        train_padding: bool = False,
        output_map: bool = False,
        padding_ends: bool = False,
    ) -> None:
        super().__init__()
        if padding is not None and padding >= vocab:
            raise ZooError(f"padding ({padding}) must be below vocab ({vocab})")
        if output_map and inner_dim is None:
            raise ZooError("output_map requires inner_dim")
        if padding_ends and padding is None:
            raise ZooError("padding_ends requires a padding token")
        self.vocab = vocab
        self.dim = dim
        self.padding, self.padding_ends = padding, padding_ends
        self.train_padding = train_padding or padding_ends
        self.scaled = scaled
        self.std = std
        self.scale = dim**0.5 if scaled else 1.0
        self.inner_dim = inner_dim
        zero_row = None if self.train_padding else padding
        self.table = nn.Embedding(vocab, inner_dim or dim, padding_idx=zero_row)
        self.map = None if inner_dim is None else nn.Linear(inner_dim, dim, bias=False)
        self.output_map = nn.Linear(dim, inner_dim or dim, bias=False) if output_map else None
        self.segments = nn.Embedding(segments, dim) if segments else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.table.weight.normal_(std=self.std)
        if self.table.padding_idx is not None:
            self.table.weight[self.table.padding_idx].zero_()
        if self.segments is not None:
            self.segments.weight.normal_(std=self.std)

    def forward(self, inputs: Tensor) -> Tensor:
        vectors = self.lookup(_token_ids(inputs)) * self.scale
        if self.map is not None:
            vectors = self.map(vectors)
        if self.segments is None:
            return vectors
        segment_ids = inputs[..., 1] if inputs.dim() == 3 else torch.zeros_like(inputs)
        embedded: Tensor = vectors + self.segments(segment_ids)
        return embedded.masked_fill(~self.mask(inputs)[..., None], 0.0)

    def lookup(self, tokens: Tensor) -> Tensor:
        """Return the rows [B, S, D] of the table, E, of token IDs [B, S]."""
        rows: Tensor = self.table(tokens)
        return rows

    def unembed(self, states: Tensor) -> Tensor:
        states = self.project_output(states)
        return self.tied_logits(states, self.table.weight, self.table.padding_idx)

    def project_output(self, states: Tensor) -> Tensor:
        """Project states [B, S, dim] to the width of the table."""
        if self.output_map is not None:
            projected: Tensor = self.output_map(states)
            return projected
        return states if self.map is None else states @ self.map.weight

    def input_schema(self) -> TensorSchema:
        segments = None if self.segments is None else self.segments.num_embeddings
        return TensorSchema(
            ("B", "S"),
            "integer",
            below=self.vocab,
            channels=(self.vocab, segments),
            pad=self.padding or 0,
            suffix=(self.padding,) if self.padding is not None and self.padding_ends else (),
            empty=self.padding_ends,
        )

    def mask(self, inputs: Tensor) -> Tensor:
        tokens = _token_ids(inputs)
        if self.padding is None:
            return torch.ones_like(tokens, dtype=torch.bool)
        others = tokens != self.padding
        if not self.padding_ends:
            return others
        follows = F.pad(others, (1, 0), value=True)[:, :-1]  # it is first, or after another token
        return others | follows

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = self.table.weight.device
        first = 0 if self.padding is None else 1
        tokens = torch.randint(
            first,
            self.vocab,
            (batch, length),
            generator=generator,
            device=generator.device if generator else device,
        )
        # Rotating the range skips padding and keeps the other tokens equally likely.
        return ((tokens + (self.padding or 0)) % self.vocab).to(device)


def _token_ids(inputs: Tensor) -> Tensor:
    return inputs[..., 0] if inputs.dim() == 3 else inputs
