"""Token embedding: a table with one row a symbol."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Embedding


class Token(Embedding):
    r"""Looks each token up in a learned table, and its segment in another where there are any.

    .. math::
        x_t = \lambda E_{y_t} + S_{s_t}, \qquad \lambda = \sqrt{d} \text{ if scaled, else } 1

    Paper: Vaswani et al. 2017, section 3.4 (shared tables and the scale); segments as in
    Devlin et al. 2019, figure 2.

    Args:
        vocab: how many symbols there are.
        dim: width of a vector, d.
        padding: the symbol that stands for nothing; its vector is zero and stays zero. None if
            every symbol stands for something.
        scaled: multiply by the square root of d, as the Transformer does.
        std: spread of the normal draw that fills the tables.
        segments: how many parts of a text are told apart, each by a vector of its own.

    Shapes:
        symbols [B, S], all of the first segment, or with their segments [B, S, 2]
        -> [B, S, dim].
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
    ) -> None:
        super().__init__()
        if padding is not None and padding >= vocab:
            raise ZooError(f"padding ({padding}) must be below vocab ({vocab})")
        self.vocab = vocab
        self.dim = dim
        self.padding = padding
        self.scale = dim**0.5 if scaled else 1.0
        self.table = nn.Embedding(vocab, dim, padding_idx=padding)
        self.segments = nn.Embedding(segments, dim) if segments else None
        with torch.no_grad():
            self.table.weight.normal_(std=std)
            if padding is not None:
                self.table.weight[padding].zero_()
            if self.segments is not None:
                self.segments.weight.normal_(std=std)

    def forward(self, inputs: Tensor) -> Tensor:
        vectors: Tensor = self.table(_token_ids(inputs)) * self.scale
        if self.segments is None:
            return vectors
        told = inputs[..., 1] if inputs.dim() == 3 else torch.zeros_like(inputs)
        embedded: Tensor = vectors + self.segments(told)
        return embedded.masked_fill(~self.mask(inputs)[..., None], 0.0)

    def unembed(self, states: Tensor) -> Tensor:
        return states @ self.table.weight.T

    def mask(self, inputs: Tensor) -> Tensor:
        symbols = _token_ids(inputs)
        if self.padding is None:
            return torch.ones_like(symbols, dtype=torch.bool)
        return symbols != self.padding

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = self.table.weight.device
        first = 0 if self.padding is None else 1
        drawn = torch.randint(
            first,
            self.vocab,
            (batch, length),
            generator=generator,
            device=generator.device if generator else device,
        )
        # Shifted past the padding symbol: every other symbol is drawn alike.
        return ((drawn + (self.padding or 0)) % self.vocab).to(device)


def _token_ids(inputs: Tensor) -> Tensor:
    return inputs[..., 0] if inputs.dim() == 3 else inputs
