"""Output layer whose logits an objective can avoid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Call, add_bias, compute_logits
from zoo_transformer.output import Output


class DeferredOutput(Acceleration):
    """Output layer that computes its logits when they are used, where the training step asks for
    it."""

    name: ClassVar[str] = "deferred-output"
    serves: ClassVar[type[Output]] = Output
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def forward(self, target: Output, states: Tensor) -> Tensor:
        if target.scale != 1:
            states = states * target.scale
        if target.embedding is not None:
            logits = target.embedding.unembed(states)
        else:
            assert target.map is not None
            logits = compute_logits(states, target.map.weight)
        return logits if target.bias is None else add_bias(logits, target.bias)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo.testing.tiny import TinyEmbedding

        for bias in (False, True):
            output = Output(embedding=TinyEmbedding(), bias=bias).to(dtype)
            yield Call(output, (torch.randn(2, 3, 5).to(dtype),))
