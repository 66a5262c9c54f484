"""Several linear layers of the same inputs in one matrix product."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.attention.module_hooks import has_hooks


def joint_linear(inputs: Tensor, layers: Sequence[nn.Module]) -> list[Tensor]:
    """Return the outputs [..., width] of linear layers for inputs [..., D].

    In training on a GPU, their weights are concatenated, so that one large product replaces several
    small ones, also in the backward pass. Otherwise the layers are called.
    """
    if not _is_joint(inputs, layers):
        return [layer(inputs) for layer in layers]
    linears: list[nn.Linear] = list(layers)  # type: ignore[arg-type]
    weight = torch.cat([linear.weight for linear in linears])
    bias = None
    if linears[0].bias is not None:
        bias = torch.cat([linear.bias for linear in linears])
    widths = [linear.out_features for linear in linears]
    return list(F.linear(inputs, weight, bias).split(widths, dim=-1))


def _is_joint(inputs: Tensor, layers: Sequence[nn.Module]) -> bool:
    """Whether the layers can be joined and it is faster, also with the copy of their weights."""
    if inputs.device.type != "cuda" or not torch.is_grad_enabled():
        return False
    if torch.compiler.is_compiling():
        return False
    plain = all(type(layer) is nn.Linear and not has_hooks(layer) for layer in layers)
    return plain and len({layer.bias is None for layer in layers}) == 1
