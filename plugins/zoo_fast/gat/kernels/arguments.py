"""Inputs and outputs of attention over edges in Triton kernels.

Notation: N nodes, H heads, D width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class EdgeScore:
    """A score function and the dropout of the weights.

    Args:
        kind: GAT, GATV2 or DOT.
        factor: slope of the leaky ReLU, or scale of an inner product.
        dropout_p: dropout probability.
        seed: random seed of the dropout [], on the device; any tensor without dropout.
    """

    kind: int
    factor: float
    dropout_p: float
    seed: Tensor

    @property
    def options(self) -> dict[str, object]:
        """The compile-time parameters of the kernels."""
        return {"SCORE": self.kind, "DROPOUT": self.dropout_p > 0}


@dataclass(frozen=True)
class Inputs:
    """The inputs of attention over edges.

    Shapes:
        q, k: terms [N, H] with equal strides for GAT, otherwise [N, H, D]; v [N, H, D], k itself if
        they are equal; a [H, D] for GATV2; bias [H * D]. For GAT, the nodes of q, k and v can have
        any stride; the other tensors are contiguous.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    a: Tensor | None
    bias: Tensor | None

    @property
    def shared(self) -> bool:
        """Whether keys are also the values."""
        return self.v is self.k


@dataclass(frozen=True)
class Gradients:
    """The gradients of the inputs; those of a and bias are empty if there are none.

    Shapes:
        terms [N, 2 * H] of which q and k are parts for GAT, otherwise q; the others as the inputs.
        The gradient of shared keys and values is v.
    """

    terms: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    a: Tensor
    bias: Tensor

    @classmethod
    def empty(cls, inputs: Inputs, programs: int, *, in_place: bool = False) -> Gradients:
        """Allocate the gradients, with a row of a and bias for each program.

        Args:
            in_place: for GAT, use the memory of q, k and v.
        """
        N, H, D = inputs.v.shape
        a, bias = (
            inputs.v.new_empty(0 if part is None else programs, H * D, dtype=torch.float32)
            for part in (inputs.a, inputs.bias)
        )
        if in_place:
            return cls(inputs.q, inputs.q, inputs.k, inputs.v, a, bias)
        v = inputs.v.new_empty(N, H, D)
        if inputs.q.dim() == 3:
            q, k = torch.empty_like(inputs.q), v if inputs.shared else torch.empty_like(inputs.k)
            return cls(q, q, k, v, a, bias)
        terms = inputs.q.new_empty(N, 2 * H)
        q, k = terms.chunk(2, dim=1)
        return cls(terms, q, k, v, a, bias)


@dataclass(frozen=True)
class AttendedNodes:
    """The outputs of the forward pass.

    Shapes:
        output [N, H, D]; lse [N, H], logarithm of the sum of exponentials.
    """

    output: Tensor
    lse: Tensor
