"""LSTM layer with a recurrent projection.

Notation: B batch, S steps, D width of inputs and outputs, H cells.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn


class ProjectedLSTM(nn.Module):
    r"""LSTM layer whose output is a projection of the cells, in one direction.

    .. math::
        i, f, o = \sigma(W_{i,f,o}\, x_t + U_{i,f,o}\, h_{t-1} + b_{i,f,o}), \quad
        \tilde c = \tanh(W_c x_t + U_c h_{t-1} + b_c)

        c_t = \mathrm{clip}(f \odot c_{t-1} + i \odot \tilde c), \qquad
        h_t = \mathrm{clip}(P (o \odot \tanh(c_t)))

    Paper: Sak et al. 2014, equations 1 to 6, without peephole connections. The parameters have the
    names and the layout of ``torch.nn.LSTM(proj_size=...)``, with one bias instead of two.

    Args:
        dim: width of the inputs and outputs.
        hidden: number of cells.
        cell_clip: limit of the absolute values of c; None for no limit.
        projection_clip: limit of the absolute values of h; None for no limit.
        backward: process the steps from last to first.

    Shapes:
        inputs [B, S, dim], mask [B, S] -> [B, S, dim]; at a masked step, h and c do not change.
    """

    weight_roles: ClassVar[Mapping[str, str]] = {"weight_hh": "recurrent", "bias": "special"}

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        backward: bool = False,
    ) -> None:
        super().__init__()
        self.dim, self.hidden, self.backward = dim, hidden, backward
        self.cell_clip, self.projection_clip = cell_clip, projection_clip
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden, dim))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden, dim))
        self.bias = nn.Parameter(torch.empty(4 * hidden))
        self.weight_hr = nn.Parameter(torch.empty(dim, hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.hidden**-0.5
        for weight in (self.weight_ih, self.weight_hh, self.weight_hr):
            nn.init.uniform_(weight, -bound, bound)
        nn.init.zeros_(self.bias)
        with torch.no_grad():
            self.bias[self.hidden : 2 * self.hidden] = 1.0  # forget gate

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        B, S, _ = inputs.shape
        projected = (inputs @ self.weight_ih.T + self.bias).unbind(dim=1)  # S times [B, 4 H]
        h, c = inputs.new_zeros(B, self.dim), inputs.new_zeros(B, self.hidden)
        outputs = []
        for s in reversed(range(S)) if self.backward else range(S):
            i, f, g, o = (projected[s] + h @ self.weight_hh.T).chunk(4, dim=-1)
            updated_c = _clip(f.sigmoid() * c + i.sigmoid() * g.tanh(), self.cell_clip)
            cells = o.sigmoid() * updated_c.tanh()
            updated_h = _clip(cells @ self.weight_hr.T, self.projection_clip)
            valid = mask[:, s, None]
            h, c = torch.where(valid, updated_h, h), torch.where(valid, updated_c, c)
            outputs.append(h)
        return torch.stack(outputs[::-1] if self.backward else outputs, dim=1)

    def extra_repr(self) -> str:
        clips = f"cell_clip={self.cell_clip}, projection_clip={self.projection_clip}"
        return f"dim={self.dim}, hidden={self.hidden}, {clips}, backward={self.backward}"


def _clip(values: Tensor, bound: float | None) -> Tensor:
    return values if bound is None else values.clamp(-bound, bound)
