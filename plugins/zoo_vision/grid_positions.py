"""Positions of the cells of a grid."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from zoo import ZooError


def grid_positions(
    rows: nn.Embedding, columns: nn.Embedding, size: Sequence[int], name: str
) -> Tensor:
    """Return the sum of row and column embeddings for a grid of this size: [h, w, D].

    Args:
        rows: embedding of each row.
        columns: embedding of each column.
        size: number of rows and columns of the grid.
        name: name of the component, for the error message.
    """
    height, width = size
    if height > rows.num_embeddings or width > columns.num_embeddings:
        raise ZooError(
            f"the grid has size {height} x {width}, but embedding '{name}' supports at most "
            f"{rows.num_embeddings} x {columns.num_embeddings}"
        )
    row: Tensor = rows(torch.arange(height, device=rows.weight.device))  # [h, D]
    column: Tensor = columns(torch.arange(width, device=columns.weight.device))  # [w, D]
    return row[:, None] + column
