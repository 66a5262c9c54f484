"""Linear layers of inputs that are mostly zeros, such as bags of words, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo_fast.gat.tensor_cache import TensorCache

MIN_SIZE = 2**18
"""Smallest number of elements for which zeros are counted."""
MAX_DENSITY = 1 / 32
"""Largest fraction of elements that are not zero."""
SAMPLED_ROWS = 64


class SparseInputs:
    """Finds inputs on the CPU that are mostly zeros and keeps their non-zero elements."""

    def __init__(self) -> None:
        self._cache: TensorCache[tuple[_SparseRows, _SparseRows] | _Dense] = TensorCache()

    def project(self, linear: nn.Linear, inputs: Tensor) -> Tensor | None:
        """Return linear(inputs) for inputs [B, N, D] with few non-zero elements; None if dense.

        Inputs that require a gradient are dense.
        """
        matrices = self._find(inputs, linear)
        if isinstance(matrices, _Dense):
            return None
        apply: Callable[..., Tensor] = _SparseProduct.apply
        product = apply(linear.weight.T.contiguous(), *matrices)
        projected = product.view(*inputs.shape[:-1], -1)
        return projected if linear.bias is None else projected + linear.bias

    def project_heads(
        self, linear: nn.Linear, inputs: Tensor, heads: int, dropout: nn.Module
    ) -> Tensor | None:
        """Return linear(dropout(inputs)) with a mask for each head; None if inputs are dense.

        The outputs of a head are a contiguous part of those of the linear layer.
        """
        matrices = self._find(inputs, linear)
        if isinstance(matrices, _Dense):
            return None
        rows = matrices[0]
        products = [
            replace(rows, values=dropout(rows.values)).multiply(weight.T.contiguous())
            for weight in linear.weight.chunk(heads)
        ]
        projected = torch.cat(products, dim=-1).view(*inputs.shape[:-1], -1)
        return projected if linear.bias is None else projected + linear.bias

    def _find(self, inputs: Tensor, linear: nn.Linear) -> tuple[_SparseRows, _SparseRows] | _Dense:
        is_small = inputs.numel() < MIN_SIZE or inputs.device.type != "cpu"
        if is_small or inputs.requires_grad:
            return _Dense()
        if linear.weight.dtype != inputs.dtype:
            return _Dense()
        return self._cache.get(inputs, None, lambda: _find_rows(inputs))


class _Dense:
    """Inputs that are not sparse."""


@dataclass(frozen=True)
class _SparseRows:
    """The non-zero elements of a matrix: first [rows], column and value of each element."""

    first: Tensor
    columns: Tensor
    values: Tensor

    @classmethod
    def build(cls, matrix: Tensor) -> _SparseRows:
        rows, columns = matrix.nonzero(as_tuple=True)
        first = torch.searchsorted(rows, torch.arange(len(matrix), device=matrix.device))
        return cls(first, columns, matrix[rows, columns])

    def multiply(self, dense: Tensor) -> Tensor:
        return F.embedding_bag(
            self.columns, dense, self.first, mode="sum", per_sample_weights=self.values
        )


class _SparseProduct(torch.autograd.Function):
    """The product of a sparse matrix, given with its transpose, and a dense matrix."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: _SparseRows, transposed: _SparseRows) -> Tensor:
        ctx.matrices = matrix, transposed
        return matrix.multiply(dense)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        matrix, transposed = ctx.matrices
        apply: Callable[..., Tensor] = _SparseProduct.apply
        return apply(g.contiguous(), transposed, matrix), None, None


def _find_rows(inputs: Tensor) -> tuple[_SparseRows, _SparseRows] | _Dense:
    """Return the rows [B * N, D] of inputs and their transpose, if they are sparse."""
    rows = inputs.flatten(0, -2)
    sample = rows[:: max(1, len(rows) // SAMPLED_ROWS)]
    if inputs.dtype not in (torch.float32, torch.float64) or any(
        part.count_nonzero() > MAX_DENSITY * part.numel() for part in (sample, rows)
    ):
        return _Dense()
    return _SparseRows.build(rows), _SparseRows.build(rows.T)
