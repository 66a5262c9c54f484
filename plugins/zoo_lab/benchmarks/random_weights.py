"""Models with random weights that are drawn on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

import zoo
from zoo import Model
from zoo.spec.meta import SkipInit

_STD = 0.02


def compose_on(
    device: torch.device, spec: str | Mapping[str, Any], dtype: torch.dtype | None = None
) -> Model:
    """Compose a model whose matrices are normally distributed, with norms of 1 and biases of 0.

    The initialisers of a spec draw numbers on the CPU, which takes long for large models.
    """
    with SkipInit():
        model: Model = zoo.compose(spec, device=device, dtype=dtype, overrides=["init=null"])
    generator = torch.Generator(device).manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=_STD, generator=generator)
            else:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)
    return model
