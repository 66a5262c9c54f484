"""Relative positions in a grid."""

from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent, Position
from zoo_positions.indices import indices

Side = Annotated[int, Field(ge=1)]


class GridBias(Position):
    r"""Relative position bias of a grid of patches: a learned bias per head and displacement.

    .. math:: e_{ts} \leftarrow e_{ts} + b_{h,\, (y_t - y_s,\, x_t - x_s)}

    The states are those of the patches, row by row. A class token before them has three biases of
    its own: to a patch, from a patch, and to itself.

    Paper: Liu et al. 2021 (Swin Transformer), equation 4; Bao et al. 2022 (BEiT), section 2.3.

    Args:
        heads: number of heads.
        size: height and width of the grid in patches, or one number for both.
        class_token: whether a class token is before the patches.

    Shapes:
        bias [H, T, S], for up to height * width (+ 1) states.
    """

    name: ClassVar[str] = "grid-bias"
    paper: ClassVar[str] = (
        "Liu et al. 2021, Swin Transformer: Hierarchical Vision Transformer using Shifted Windows, "
        "arXiv:2103.14030"
    )
    test_params: ClassVar[dict[str, Any]] = {"size": (3, 4)}

    def __init__(
        self,
        *,
        heads: FromParent[int],
        size: Side | tuple[Side, Side],
        class_token: bool = True,
    ) -> None:
        super().__init__()
        self.heads, self.class_token = heads, class_token
        self.height, self.width = (size, size) if isinstance(size, int) else size
        self.count = self.height * self.width + class_token
        self.max_positions = self.count
        self.displacements = (2 * self.height - 1) * (2 * self.width - 1)
        self.table = nn.Embedding(self.displacements + 3 * class_token, heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table.weight, std=0.02)

    def extra_repr(self) -> str:
        names = ("height", "width", "heads", "class_token")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    def bias(
        self, T: int, S: int, *, offset: int | Tensor = 0, device: torch.device
    ) -> Tensor | None:
        last = max(S, offset + T if isinstance(offset, int) else 0)
        if last > self.count:
            raise ZooError(
                f"there are {last} states, but position '{self.name}' has {self.count} "
                f"for a grid of {self.height} x {self.width}"
            )
        query = indices(T, offset, device)[:, None] - int(self.class_token)
        key = torch.arange(S, device=device) - int(self.class_token)
        values: Tensor = self.table(self._index(query, key))  # [T, S, H]
        return values.permute(2, 0, 1)

    def _index(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the rows [T, S] of patches [T, 1] and [S]; -1 is the class token."""
        down = query // self.width - key // self.width + self.height - 1
        right = query % self.width - key % self.width + self.width - 1
        index = down * (2 * self.width - 1) + right
        from_class, to_class = query < 0, key < 0
        index = index.masked_fill(from_class, self.displacements)
        index = index.masked_fill(to_class, self.displacements + 1)
        return index.masked_fill(from_class & to_class, self.displacements + 2)
