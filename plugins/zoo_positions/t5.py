"""T5's relative bias: a learned number for each bucket of distances."""

import math
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent, Position
from zoo_positions.indices import indices


class T5(Position):
    r"""Adds to each score a learned number for the distance between query and key.

    .. math:: e_{ts} \leftarrow e_{ts} + b_{h,\, \mathrm{bucket}(s - t)}

    Near distances have a bucket each, farther ones share buckets that grow logarithmically.

    Paper: Raffel et al. 2020, section 2.1.

    Args:
        heads: how many heads there are.
        causal: whether queries see no later keys, so that all buckets serve the past.
        buckets: how many there are.
        farthest: distances from here on share the last.

    Shapes:
        bias [H, T, S].
    """

    name: ClassVar[str] = "t5"
    paper: ClassVar[str] = (
        "Raffel et al. 2020, Exploring the Limits of Transfer Learning with a Unified "
        "Text-to-Text Transformer, arXiv:1910.10683"
    )

    def __init__(
        self,
        *,
        heads: FromParent[int],
        causal: FromParent[bool],
        buckets: Annotated[int, Field(ge=4)] = 32,
        farthest: Annotated[int, Field(ge=8)] = 128,
    ) -> None:
        super().__init__()
        near = (buckets if causal else buckets // 2) // 2
        if farthest <= near:
            raise ZooError(
                f"farthest ({farthest}) must be above the {near} distances that have a bucket each"
            )
        self.causal = causal
        self.buckets = buckets
        self.farthest = farthest
        self.table = nn.Embedding(buckets, heads)
        nn.init.normal_(self.table.weight, std=0.1)

    def bias(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> Tensor | None:
        relative = torch.arange(S, device=device) - indices(T, offset, device)[:, None]
        values: Tensor = self.table(self._bucket(relative))  # [T, S, H]
        return values.permute(2, 0, 1)

    def _bucket(self, relative: Tensor) -> Tensor:
        """Distances key - query [T, S] -> buckets [T, S]."""
        count, base = self.buckets, torch.zeros_like(relative)
        if self.causal:
            distance = (-relative).clamp(min=0)
        else:
            count //= 2
            base = (relative > 0).long() * count
            distance = relative.abs()
        near = count // 2
        grown = torch.log(distance.clamp(min=1).float() / near) / math.log(self.farthest / near)
        far = (near + (grown * (count - near)).long()).clamp(max=count - 1)
        return base + torch.where(distance < near, distance, far)
