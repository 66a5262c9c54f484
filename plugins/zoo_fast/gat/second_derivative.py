"""Gradients of fused paths that can be differentiated again."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def differentiable_gradients(
    function: Callable[..., Tensor], inputs: tuple[Tensor | None, ...], g: Tensor
) -> list[Tensor | None]:
    """Return the gradients of a function of the inputs, None for inputs that are None.

    Args:
        function: the function in differentiable operations, of the inputs.
        inputs: the saved inputs of the fused path.
        g: gradient of the output.
    """
    # Views, because an input can depend on another one.
    views = [None if part is None else part.view_as(part) for part in inputs]
    given = [view for view in views if view is not None]
    grads = iter(torch.autograd.grad(function(*views), given, g, create_graph=True))
    return [None if view is None else next(grads) for view in views]
