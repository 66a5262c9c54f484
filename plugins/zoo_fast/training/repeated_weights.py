"""Products of the forward pass whose weights get their gradients from `WeightProducts`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from zoo_fast.device.late_gradients import LateGradients
from zoo_fast.training.repeated_cells import CELLS
from zoo_fast.training.repeated_linear import can_repeat, repeated_linear
from zoo_fast.training.selections import Selections
from zoo_fast.training.weight_products import WeightProducts

_PRODUCTS = {torch.matmul, torch.mm, Tensor.matmul, Tensor.mm, Tensor.__matmul__}


@contextmanager
def repeated_weights(module: nn.Module, late: LateGradients) -> Iterator[None]:
    """Replace functions in the forward pass of a module, unless a part of it is compiled."""
    if any(part._compiled_call_impl is not None for part in module.modules()):
        yield
    else:
        with RepeatedWeights(WeightProducts(late)), Selections():
            yield


class RepeatedWeights(TorchFunctionMode):
    """Replaces products of inputs and parameters, or views of parameters, inside the block.

    These are linear layers, matrix products with the parameter on the right, and recurrent cells.
    The results are the same. The gradient of a weight that is used once is computed as before.
    """

    def __init__(self, products: WeightProducts) -> None:
        super().__init__()
        self.products = products

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        replaced = None
        if torch.is_grad_enabled():
            if func is F.linear:
                replaced = self._linear(*args, **kwargs)
            elif func in _PRODUCTS and not kwargs:
                replaced = self._product(*args)
            elif func in CELLS:
                replaced = CELLS[func](self.products, *args, **kwargs)
        return func(*args, **kwargs) if replaced is None else replaced

    def _linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor | None:
        if not can_repeat(input, weight, bias):
            return None
        return repeated_linear(self.products, input, weight, bias)

    def _product(self, input: Tensor, other: Tensor) -> Tensor | None:
        if other.dim() != 2 or not can_repeat(input, other.T):
            return None
        return repeated_linear(self.products, input, other.T)
