"""Grid embedding."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Embedding, TensorSchema
from zoo_vision.grid_positions import grid_positions


class Grid(Embedding):
    r"""Grid embedding: token embedding of each cell plus row and column embeddings.

    .. math:: x_{rc} = E_{g_{rc}} + R_r + C_c

    Paper: Chen et al. 2020, section 3.2, where the tokens are quantised pixels.

    Args:
        vocab: vocabulary size.
        dim: width of a vector.
        rows: maximum number of rows.
        columns: maximum number of columns.

    Shapes:
        [B, rows, columns] -> [B, rows * columns, dim], in row-major order.
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
        raise ZooError(
            f"embedding '{self.name}' embeds a two-dimensional grid and cannot generate a sequence"
        )

    def forward(self, inputs: Tensor) -> Tensor:
        positions = grid_positions(self.rows, self.columns, inputs.shape[1:], self.name)
        vectors: Tensor = self.table(inputs) + positions  # [B, R, C, dim]
        return vectors.flatten(1, 2)

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", "R", "C"), "integer", below=self.vocab, same_size=True)

    def mask(self, inputs: Tensor) -> Tensor:
        return torch.ones_like(inputs, dtype=torch.bool).flatten(1)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = self.table.weight.device
        tokens = torch.randint(
            0,
            self.vocab,
            (batch, 1, length),
            generator=generator,
            device=generator.device if generator else device,
        )
        return tokens.to(device)
