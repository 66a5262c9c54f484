"""Feed-forward networks with ReLU in the kernel of the first product, or with the gate in one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.acceleration import plain_class
from zoo.attention.heads import Linear
from zoo.plugin import Acceleration, Call, Declined
from zoo_fast.device.triton_support import why_not_triton, why_not_triton_on
from zoo_transformer.feed_forward import FeedForward


class ReluFeedForward(Acceleration):
    """Feed-forward network whose activation is part of the first product, and whose gradient is
    computed together with that of the bias."""

    name: ClassVar[str] = "relu-feed-forward"
    serves: ClassVar[type[FeedForward]] = FeedForward
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.bfloat16)

    def why_not(self, target: FeedForward, device: torch.device) -> str | None:
        return why_not_relu(target) or why_not_triton_on(device.type)

    def forward(self, target: FeedForward, x: Tensor) -> Tensor | Declined:
        reason = why_not_triton(x, target.up.weight)
        if reason is not None:
            return Declined(reason)
        output: Tensor = target.down(hidden_layer(target, x))
        return output

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        for shape in ((2, 3), (1, 1), (5, 17)):
            network = FeedForward(dim=6, hidden=10).to(dtype)
            yield Call(network, (torch.randn(*shape, 6).to(dtype),))


class GatedFeedForward(Acceleration):
    """Feed-forward network whose gate with SiLU is one kernel."""

    name: ClassVar[str] = "gated-feed-forward"
    serves: ClassVar[type[FeedForward]] = FeedForward
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    calls_parts: ClassVar[bool] = True
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.bfloat16)

    def why_not(self, target: FeedForward, device: torch.device) -> str | None:
        return why_not_silu_gate(target) or why_not_triton_on(device.type)

    def forward(self, target: FeedForward, x: Tensor) -> Tensor | Declined:
        reason = why_not_triton(x)
        if reason is not None:
            return Declined(reason)
        output: Tensor = target.down(hidden_layer(target, x))
        return output

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        for shape, bias in (((2, 3), True), ((1, 1), False), ((5, 17), False)):
            network = FeedForward(dim=6, hidden=10, activation="silu", gated=True, bias=bias)
            yield Call(network.to(dtype), (torch.randn(*shape, 6).to(dtype),))


def why_not_silu_gate(network: FeedForward) -> str | None:
    """Return why the kernel does not compute the gate, or None if it does."""
    if network.gated and network.activation == "silu":
        return None
    return "the network has no gate with SiLU"


def why_not_relu(network: FeedForward) -> str | None:
    """Return why the kernel cannot compute the hidden layer, or None if it can."""
    if network.activation != "relu" or network.gated or not network.bias:
        return "the network is gated, the activation is not ReLU, or there is no bias"
    return None if plain_class(network.up) in (nn.Linear, Linear) else "the layer is not torch's"


def hidden_layer(network: FeedForward, x: Tensor) -> Tensor:
    """Compute the hidden layer, with ReLU or the gate in a kernel if it is possible."""
    if why_not_relu(network) is None and why_not_triton(x, network.up.weight) is None:
        from zoo_fast.transformer.kernels.relu_linear import relu_linear

        return relu_linear(x, network.up.weight, network.up.bias)
    if network.gate is None:
        return network.activate(network.up(x))
    gate, values = network.gate(x), network.up(x)
    if why_not_silu_gate(network) is None and why_not_triton(gate, values) is None:
        from zoo_fast.transformer.kernels.gated import silu_product

        return silu_product(gate, values)
    gated: Tensor = network.activate(gate) * values
    return gated
