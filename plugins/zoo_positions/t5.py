"""T5 position."""

import math
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent, Position, rename_params
from zoo_positions.indices import indices


class T5(Position):
    r"""T5 relative position bias: a learned bias per head and bucket of distances.

    .. math:: e_{ts} \leftarrow e_{ts} + b_{h,\, \mathrm{bucket}(s - t)}

    Small distances have a bucket each; larger distances share buckets of logarithmic width.

    Paper: Raffel et al. 2020, section 2.1.

    Args:
        heads: number of heads.
        causal: whether queries attend to previous keys only, which then use all buckets.
        buckets: number of buckets.
        max_distance: distances from this on share the last bucket.

    Shapes:
        bias [H, T, S].
    """

    name: ClassVar[str] = "t5"
    version: ClassVar[int] = 2
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
        max_distance: Annotated[int, Field(ge=8)] = 128,
    ) -> None:
        super().__init__()
        near = (buckets if causal else buckets // 2) // 2
        if max_distance <= near:
            raise ZooError(
                f"max_distance ({max_distance}) must be greater than {near}, the number of "
                f"distances that have their own bucket with {buckets} buckets"
            )
        self.heads, self.causal = heads, causal
        self.buckets, self.max_distance = buckets, max_distance
        self.table = nn.Embedding(buckets, heads)
        self.reset_parameters()

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, farthest="max_distance")
        return params, tensors

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table.weight, std=0.1)

    def bias(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> Tensor | None:
        relative = torch.arange(S, device=device) - indices(T, offset, device)[:, None]
        values: Tensor = self.table(self._bucket(relative))  # [T, S, H]
        return values.permute(2, 0, 1)

    def _bucket(self, relative: Tensor) -> Tensor:
        """Map relative positions (key - query) [T, S] to buckets [T, S]."""
        count, base = self.buckets, torch.zeros_like(relative)
        if self.causal:
            distance = (-relative).clamp(min=0)
        else:
            count //= 2
            base = (relative > 0).long() * count
            distance = relative.abs()
        near = count // 2
        log_ratio = torch.log(distance.clamp(min=1).float() / near)
        fraction = log_ratio / math.log(self.max_distance / near)
        far = (near + (fraction * (count - near)).long()).clamp(max=count - 1)
        return base + torch.where(distance < near, distance, far)
