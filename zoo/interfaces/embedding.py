"""Interface of embeddings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces.batch_schema import TensorSchema
from zoo.interfaces.component import Component


def tied_logits(states: Tensor, table: Tensor, padding: int | None) -> Tensor:
    """Compute logits [..., V] of states [..., D] with an embedding table [V, D].

    The row of the padding token receives no gradient, as in `torch.nn.Embedding`, so it stays zero
    in training.
    """
    return F.linear(states, freeze_row(table, padding))


def freeze_row(table: Tensor, row: int | None) -> Tensor:
    """Return the table [V, D], of which one row receives no gradient."""
    if row is None or not torch.is_grad_enabled() or not table.requires_grad:
        return table
    trained = torch.arange(table.shape[0], device=table.device) != row
    return torch.where(trained[:, None], table, table.detach())


class Embedding(Component, nn.Module, ABC):
    """Maps inputs to a sequence of vectors.

    Laws:
        padding has no effect: the input at a masked position does not change the vectors of other
        positions, and its own vector is zero, also after training an output layer tied to the
        embedding, unless `train_padding`; `example` fits `input_schema`.

    Attributes:
        dim: width of the vectors.
        vocab: vocabulary size, or None if inputs are not tokens.
        padding: ID of the padding token, or None.
        train_padding: whether the vector of the padding token is trained, because the token is
            also used otherwise.
    """

    kind: ClassVar[str] = "embedding"
    widths: ClassVar[tuple[str, ...]] = ("dim",)

    dim: int
    vocab: int | None = None
    padding: int | None = None
    train_padding: bool = False

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """Compute vectors [B, S, D] from inputs [B, S, ...]."""

    def input_schema(self) -> TensorSchema:
        """Return shape and dtype of the inputs; "S" is the number of vectors. Default: unknown."""
        return TensorSchema()

    @abstractmethod
    def mask(self, inputs: Tensor) -> Tensor:
        """Return a mask [B, S] of inputs [B, S, ...], True where an input is not padding."""

    def validate_special_tokens(self, *, bos: int | None, eos: int | Sequence[int]) -> int:
        """Check that bos and eos are valid for this vocabulary and return the pad token ID.

        The pad token is `padding` or, if it is None, the first eos token, or 0 without one.
        """
        if self.vocab is None:
            raise ZooError(
                f"embedding '{self.name}' is not a token embedding, so tokens cannot be generated"
            )
        eos_ids = to_eos_ids(eos)
        for name, token in (("bos", bos), *(("eos", end) for end in eos_ids)):
            if token is not None and token >= self.vocab:
                raise ZooError(f"{name} ({token}) must be less than vocab ({self.vocab})")
        if self.padding in eos_ids:
            relation = "differ from" if isinstance(eos, int) else "not contain"
            raise ZooError(f"eos ({eos}) must {relation} padding ({self.padding})")
        return next(iter(eos_ids), 0) if self.padding is None else self.padding

    def unembed(self, states: Tensor) -> Tensor:
        """Compute logits [..., V] of states [..., D] with the embedding matrix.

        The padding token's row of the matrix receives no gradient; `tied_logits` computes that.
        """
        raise ZooError(
            f"embedding '{self.name}' has no embedding matrix, so it cannot be tied to the output "
            "layer"
        )

    @staticmethod
    def tied_logits(states: Tensor, table: Tensor, padding: int | None) -> Tensor:
        """Compute logits [..., V] of states [..., D] with a table [V, D], for `unembed`."""
        return tied_logits(states, table, padding)

    @abstractmethod
    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        """Return random inputs [B, S, ...] without padding."""


def to_eos_ids(eos: int | Collection[int]) -> tuple[int, ...]:
    """Return the IDs of the end tokens as a tuple."""
    return (eos,) if isinstance(eos, int) else tuple(eos)
