"""Linear embedding of input vectors."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Embedding, TensorSchema


class Dense(Embedding):
    r"""Linear projection of each input vector; no position is masked.

    .. math:: x_t = W v_t + b

    Paper: Graves et al. 2014, section 4.1, where the inputs are vectors of bits.

    Args:
        width: width of the inputs.
        dim: width of the embedding.

    Shapes:
        [B, S, width] -> [B, S, dim].
    """

    name: ClassVar[str] = "dense"
    paper: ClassVar[str] = (
        "Graves, Wayne and Danihelka 2014, Neural Turing Machines, arXiv:1410.5401"
    )

    def __init__(
        self, *, width: Annotated[int, Field(ge=1)], dim: Annotated[int, Field(ge=1)]
    ) -> None:
        super().__init__()
        self.width = width
        self.dim = dim
        self.map = nn.Linear(width, dim)

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.shape[-1] != self.width:
            raise ZooError(f"inputs are {list(inputs.shape)}, expected [B, S, {self.width}]")
        vectors: Tensor = self.map(inputs.to(self.map.weight.dtype))
        return vectors

    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", "S", self.width))

    def mask(self, inputs: Tensor) -> Tensor:
        return torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        weight = self.map.weight
        shape = (batch, length, self.width)
        device = generator.device if generator else weight.device
        return torch.randint(0, 2, shape, generator=generator, device=device).to(weight)
