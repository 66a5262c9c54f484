"""LSTM layers of a bidirectional language model."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import FromParent
from zoo_language.projected_lstm import ProjectedLSTM

Clip = Annotated[float, Field(gt=0)] | None


class BiLMLayers(nn.Module):
    r"""Stacked LSTMs with projections, one stack for each direction, which do not exchange states.

    .. math:: h_0 = [x; x], \qquad h_j = [\overrightarrow{h}_j; \overleftarrow{h}_j], \qquad
        \overrightarrow{h}_j = \mathrm{LSTM}_j(\overrightarrow{h}_{j-1})
        + \overrightarrow{h}_{j-1} \text{ (the sum if } j > 1)

    Paper: Peters et al. 2018, section 3.1 and 3.4. The clipping of cells and projections is not in
    the paper; the authors' code clips both at 3.

    Args:
        dim: width of the inputs, the projections and the states of one direction.
        hidden: number of cells of a layer.
        layers: number of layers.
        residual: add the input of each layer but the first to its output.
        cell_clip: limit of the absolute values of the cells; null for no limit.
        projection_clip: limit of the absolute values of the projections; null for no limit.
        dropout: dropout probability of the inputs of each layer.

    Shapes:
        inputs [B, S, dim], mask [B, S] -> [B, S, layers + 1, 2 dim], zero at masked positions.
    """

    def __init__(
        self,
        *,
        dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)],
        layers: Annotated[int, Field(ge=1, le=64)] = 2,
        residual: bool = True,
        cell_clip: Clip = None,
        projection_clip: Clip = None,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        self.dim, self.residual = dim, residual
        self.forwards, self.backwards = (
            nn.ModuleList(
                ProjectedLSTM(
                    dim,
                    hidden,
                    cell_clip=cell_clip,
                    projection_clip=projection_clip,
                    backward=backward,
                )
                for _ in range(layers)
            )
            for backward in (False, True)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        directions = []
        for layers in (self.forwards, self.backwards):
            states = [inputs]
            for layer in layers:
                x = self.dropout(states[-1])
                outputs = layer(x, mask)
                residual = self.residual and len(states) > 1
                states.append(outputs + x if residual else outputs)
            directions.append(torch.stack(states, dim=2))  # [B, S, layers + 1, dim]
        return torch.cat(directions, dim=-1) * mask[:, :, None, None]

    def extra_repr(self) -> str:
        return f"dim={self.dim}, residual={self.residual}"
