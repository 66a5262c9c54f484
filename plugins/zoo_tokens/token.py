"""Token embedding: a table with one row a symbol."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Embedding, ZooError


class Token(Embedding):
    r"""Looks each token up in a learned table.

    .. math:: x_t = \lambda E_{y_t}, \qquad \lambda = \sqrt{d} \text{ if scaled, else } 1

    Paper: Vaswani et al. 2017, section 3.4 (shared tables and the scale).

    Args:
        vocab: how many symbols there are.
        dim: width of a vector, d.
        padding: the symbol that stands for nothing; its vector is zero and stays zero.
        scaled: multiply by the square root of d, as the Transformer does.
        std: spread of the normal draw that fills the table.

    Shapes:
        [B, S] -> [B, S, dim].
    """

    name: ClassVar[str] = "token"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"

    vocab: int
    padding: int

    def __init__(
        self,
        *,
        vocab: Annotated[int, Field(ge=2)],
        dim: Annotated[int, Field(ge=1)],
        padding: Annotated[int, Field(ge=0)] = 0,
        scaled: bool = False,
        std: Annotated[float, Field(gt=0)] = 1.0,
    ) -> None:
        super().__init__()
        if padding >= vocab:
            raise ZooError(f"padding ({padding}) must be below vocab ({vocab})")
        self.vocab = vocab
        self.dim = dim
        self.padding = padding
        self.scale = dim**0.5 if scaled else 1.0
        self.table = nn.Embedding(vocab, dim, padding_idx=padding)
        with torch.no_grad():
            self.table.weight.normal_(std=std)
            self.table.weight[padding].zero_()

    def forward(self, inputs: Tensor) -> Tensor:
        vectors: Tensor = self.table(inputs)
        return vectors * self.scale

    def unembed(self, states: Tensor) -> Tensor:
        return states @ self.table.weight.T

    def mask(self, inputs: Tensor) -> Tensor:
        return inputs != self.padding

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = self.table.weight.device
        drawn = torch.randint(
            1,
            self.vocab,
            (batch, length),
            generator=generator,
            device=generator.device if generator else device,
        )
        # Shifted past the padding symbol: every other symbol is drawn alike.
        return ((drawn + self.padding) % self.vocab).to(device)
