"""Linear layers in training on a GPU: joined with others of their inputs, or without the bias."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.acceleration import has_own_hooks, plain_class
from zoo.attention.heads import Linear
from zoo_fast.attention.concatenate import concatenate
from zoo_fast.device.triton_support import why_not_triton


def joint_linear(inputs: Tensor, layers: Sequence[nn.Module]) -> list[Tensor]:
    """Return the outputs [..., width] of linear layers for inputs [..., D].

    In training on a GPU, their weights are concatenated, so that one large product replaces several
    small ones, also in the backward pass. Otherwise the layers are called.
    """
    if not (replaces_calls(inputs, layers) and len({_bias(each) is None for each in layers}) == 1):
        return [layer(inputs) for layer in layers]
    linears: list[nn.Linear] = list(layers)  # type: ignore[arg-type]
    biases = [linear.bias for linear in linears if linear.bias is not None]
    return _outputs(inputs, [linear.weight for linear in linears], biases)


def _outputs(inputs: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of linear layers with these weights, and biases if there are any."""
    if inputs.numel() and why_not_triton(inputs, *weights) is None:
        from zoo_fast.attention.kernels.training_linear import linear

        return list(linear(inputs, weights, biases))
    bias = concatenate(biases) if biases else None
    output = F.linear(inputs, concatenate(weights), bias)
    return list(torch.split(output, [len(weight) for weight in weights], dim=-1))


def split_bias(inputs: Tensor, layer: nn.Module) -> tuple[Tensor, Tensor | None]:
    """Return the output of a linear layer without its bias, and the bias for the caller to add.

    A kernel that adds it can also compute its gradient. Where this is not useful or the layer has
    to be called, return the output of the layer, and None.
    """
    bias = _bias(layer)
    if bias is None or not replaces_calls(inputs, [layer]):
        return layer(inputs), None
    assert isinstance(layer, nn.Linear)
    (output,) = _outputs(inputs, [layer.weight], [])
    return output, bias


def _bias(layer: nn.Module) -> Tensor | None:
    bias: Tensor | None = getattr(layer, "bias", None)
    return bias


def replaces_calls(inputs: Tensor, layers: Sequence[nn.Module]) -> bool:
    """Whether products with the weights can replace calls of the layers, and are faster."""
    if inputs.device.type != "cuda" or not torch.is_grad_enabled():
        return False
    if torch.compiler.is_compiling():
        return False
    return all(_is_plain(layer) for layer in layers)


def _is_plain(layer: nn.Module) -> bool:
    """Whether a layer is torch's without hooks, and its weight is not sharded or wrapped."""
    is_linear = plain_class(layer) in (nn.Linear, Linear) and not has_own_hooks(layer)
    return is_linear and type(layer.weight) in (nn.Parameter, Tensor)
