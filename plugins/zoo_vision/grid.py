"""Grid embedding: a sketch as the symbols in its cells."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Embedding


class Grid(Embedding):
    r"""Looks up the symbol in each cell of a grid and adds where the cell is.

    .. math:: x_{rc} = E_{g_{rc}} + R_r + C_c

    Paper: Chen et al. 2020, section 3.2, where the symbols are quantised pixels.

    Args:
        vocab: how many symbols a cell may hold.
        dim: width of a vector.
        rows: how many rows a grid has at the most.
        columns: how many columns it has at the most.

    Shapes:
        [B, rows, columns] -> [B, rows * columns, dim], row by row.
    """

    name: ClassVar[str] = "grid"
    paper: ClassVar[str] = "Chen et al. 2020, Generative Pretraining from Pixels"

    vocab: int

    def __init__(
        self,
        *,
        vocab: Annotated[int, Field(ge=2)],
        dim: Annotated[int, Field(ge=1)],
        rows: Annotated[int, Field(ge=1)],
        columns: Annotated[int, Field(ge=1)],
    ) -> None:
        super().__init__()
        self.vocab = vocab
        self.dim = dim
        self.table = nn.Embedding(vocab, dim)
        self.rows = nn.Embedding(rows, dim)
        self.columns = nn.Embedding(columns, dim)

    def validate_special_tokens(self, *, bos: int | None, eos: int | Sequence[int]) -> int:
        raise ZooError(f"embedding '{self.name}' has rows and columns, but no order to speak in")

    def forward(self, inputs: Tensor) -> Tensor:
        _, rows, columns = inputs.shape
        if rows > self.rows.num_embeddings or columns > self.columns.num_embeddings:
            raise ZooError(
                f"a grid of {rows} x {columns} is larger than "
                f"{self.rows.num_embeddings} x {self.columns.num_embeddings}"
            )
        row = self.rows.weight[:rows, None]
        column = self.columns.weight[None, :columns]
        vectors: Tensor = self.table(inputs) + row + column  # [B, R, C, dim]
        return vectors.flatten(1, 2)

    def mask(self, inputs: Tensor) -> Tensor:
        return torch.ones_like(inputs, dtype=torch.bool).flatten(1)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = self.table.weight.device
        drawn = torch.randint(
            0,
            self.vocab,
            (batch, 1, length),
            generator=generator,
            device=generator.device if generator else device,
        )
        return drawn.to(device)
