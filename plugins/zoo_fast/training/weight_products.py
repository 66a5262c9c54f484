"""Gradients of weights that are used several times in one forward pass, as one product each.

A weight that every step of a recurrence multiplies gets its gradient in as many products and sums
as there are steps, each of which reads and writes a tensor of the size of the weight. Instead, the
inputs and the gradients of the outputs are kept, and multiplied together.

Notation: K width of the inputs, N width of the outputs, R rows of a use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from zoo_fast.device.late_gradients import LateGradients

MIN_BYTES = 2**22
"""Rows of this size are kept in any case; more only up to the size of the weight."""


@dataclass
class RepeatedWeight:
    """A weight [N, K] with its bias [N], the number of its uses, and the rows of the uses that the
    backward pass has reached."""

    weight: Tensor
    bias: Tensor | None
    uses: int = 0
    reached: int = 0
    inputs: list[Tensor] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)

    @property
    def kept_bytes(self) -> int:
        return sum(rows.nbytes for rows in (*self.inputs, *self.gradients))


class WeightProducts:
    """Sums the gradients of repeated weights during one backward pass.

    Args:
        late: computes the products, and adds them to the gradients of the parameters.
    """

    def __init__(self, late: LateGradients) -> None:
        self.late = late
        self.late.before_end(self._finish)
        self._weights: dict[object, RepeatedWeight] = {}
        self._sums: dict[int, Tensor] = {}

    def use(self, weight: Tensor, bias: Tensor | None) -> RepeatedWeight:
        """Count a use of a weight, a parameter or a view of one, in the forward pass."""
        key = (_place(weight), None if bias is None else _place(bias))
        repeated = self._weights.setdefault(key, RepeatedWeight(weight, bias))
        repeated.uses += 1
        return repeated

    def keeps(self, repeated: RepeatedWeight) -> bool:
        """Whether the gradient of a use is to be passed to `add` instead of being returned."""
        return repeated.uses > 1 and self.late.is_open and not torch.is_grad_enabled()

    def add(self, repeated: RepeatedWeight, inputs: Tensor, gradient: Tensor) -> None:
        """Keep the inputs [..., K] of a use, and the gradient [..., N] of its outputs."""
        repeated.reached += 1
        repeated.inputs.append(inputs.reshape(-1, inputs.shape[-1]))
        repeated.gradients.append(gradient.reshape(-1, gradient.shape[-1]))
        is_last = repeated.reached == repeated.uses
        if is_last or repeated.kept_bytes > max(repeated.weight.nbytes, MIN_BYTES):
            self._multiply(repeated)

    def _finish(self) -> None:
        for repeated in self._weights.values():
            if repeated.inputs:  # a use has not contributed to the loss
                self._multiply(repeated)
        self._weights.clear()
        self._sums.clear()

    def _multiply(self, repeated: RepeatedWeight) -> None:
        inputs, gradients = repeated.inputs, repeated.gradients
        repeated.inputs, repeated.gradients = [], []
        self.late.run(partial(self._add_products, repeated, inputs, gradients))

    def _add_products(
        self, repeated: RepeatedWeight, inputs: list[Tensor], gradients: list[Tensor]
    ) -> None:
        x, dy = torch.cat(inputs), torch.cat(gradients)  # [R, K], [R, N]
        total, is_set = self._sum_of(repeated.weight)
        torch.addmm(total, dy.T, x, beta=int(is_set), out=total)
        if repeated.bias is not None:
            total, is_set = self._sum_of(repeated.bias)
            sums = dy.sum(dim=0)
            total.add_(sums) if is_set else total.copy_(sums)

    def _sum_of(self, view: Tensor) -> tuple[Tensor, bool]:
        """Return the sum of the gradients of a view of a parameter, and whether it is set."""
        parameter = base_of(view)
        key, is_whole = id(parameter), view.numel() == parameter.numel()
        is_set = key in self._sums or not is_whole
        if key not in self._sums:
            empty = torch.empty_like(parameter, requires_grad=False)
            self._sums[key] = empty if is_whole else empty.zero_()
            self.late.add_gradient(parameter, self._sums[key])
        offset = view.storage_offset() - parameter.storage_offset()
        return self._sums[key].as_strided(view.shape, view.stride(), offset), is_set


def base_of(view: Tensor) -> Tensor:
    """Return the parameter of which a tensor is a view, or the tensor itself."""
    base: Tensor | None = view._base
    return view if base is None else base


def _place(view: Tensor) -> tuple[object, ...]:
    return id(base_of(view)), view.shape, view.stride(), view.storage_offset()
