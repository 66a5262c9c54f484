"""Learned position."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import FromParent, Position
from zoo_positions.indices import indices


class Learned(Position):
    r"""Learned absolute position embedding.

    .. math:: x'_t = x_t + P_t

    Paper: Gehring et al. 2017, section 3.1.

    Args:
        dim: width of the states.
        length: maximum number of positions.
        std: standard deviation of the initial weights; not used if the initialiser of the spec
            samples embeddings.

    Shapes:
        [B, T, dim] -> [B, T, dim], T up to length.
    """

    name: ClassVar[str] = "learned"
    paper: ClassVar[str] = (
        "Gehring et al. 2017, Convolutional Sequence to Sequence Learning, arXiv:1705.03122"
    )

    def __init__(
        self,
        *,
        dim: FromParent[int],
        length: Annotated[int, Field(ge=1)],
        std: Annotated[float, Field(gt=0)] = 0.02,
    ) -> None:
        super().__init__()
        self.dim, self.length, self.std = dim, length, std
        self.max_positions = length
        self.table = nn.Embedding(length, dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table.weight, std=self.std)

    def add(self, states: Tensor, *, offset: int | Tensor = 0) -> Tensor:
        T = states.shape[1]
        end = T + (offset if isinstance(offset, int) else 0)
        if end > self.length:
            raise ZooError(f"the sequence has {end} positions, but length is {self.length}")
        vectors: Tensor = self.table(indices(T, offset, states.device))
        return states + vectors
