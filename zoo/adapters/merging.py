"""Merges adapters into the parameters of a model."""

from __future__ import annotations

import torch
from torch import nn

from zoo.adapters.attachment import adapted_modules, detach, find_adapters
from zoo.errors import ZooError


@torch.no_grad()
def merge_layers(model: nn.Module) -> None:
    """Merge the enabled adapters into the parameters, in their order, and remove all adapters.

    Raises:
        ZooError: if an adapter cannot be merged; the parameters before it are changed then.
    """
    for name, adapter in find_adapters(model).items():
        if not adapter.enabled:
            continue
        for path, module, layer in adapted_modules(model, adapter):
            try:
                layer.merge(module)
            except ZooError as error:
                raise ZooError(f"adapter '{name}' at {path}: {error}") from error
    detach(model)
