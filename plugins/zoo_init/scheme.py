"""Base class of initialisers that set biases to 0 and keep norms."""

from abc import abstractmethod
from typing import Annotated

from pydantic import Field
from torch import Tensor

from zoo.plugin import Initialiser, Weight

PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Scheme(Initialiser):
    """Sets biases to 0, keeps norms, and samples all other weights.

    Args:
        embeddings: whether to sample embeddings; otherwise they keep their own initial values.
    """

    def __init__(self, *, embeddings: bool) -> None:
        self.embeddings = embeddings

    @abstractmethod
    def weight_std(self, weight: Weight) -> float:
        """Return the standard deviation of a weight that is not a bias."""

    @abstractmethod
    def sample(self, weight: Weight) -> None:
        """Sample the values of a weight that is not a bias, in place."""

    def initial_std(self, weight: Weight) -> float | None:
        if weight.role == "norm" or (weight.role == "embedding" and not self.embeddings):
            return None
        return 0.0 if weight.role == "bias" else self.weight_std(weight)

    def fill(self, weight: Weight) -> None:
        if weight.role == "bias":
            weight.tensor.zero_()
        else:
            self.sample(weight)


def as_matrix(tensor: Tensor) -> Tensor:
    """Return a weight vector [n] as the matrix [1, n] of a layer with one output."""
    return tensor.view(1, -1) if tensor.dim() < 2 else tensor


def fans(tensor: Tensor) -> tuple[int, int]:
    """Return the number of inputs and of outputs of each unit."""
    matrix = as_matrix(tensor)
    receptive_field = matrix[0, 0].numel()
    return matrix.shape[1] * receptive_field, matrix.shape[0] * receptive_field
