"""Merges adapters into the parameters of a model."""

from __future__ import annotations

import torch
from torch import nn

from zoo.adapters.attachment import adapted_modules, detach, find_adapters
from zoo.errors import ZooError
from zoo.interfaces.adapter import AdapterLayer


@torch.no_grad()
def merge_layers(model: nn.Module) -> None:
    """Merge the enabled adapters into the parameters, and remove all adapters.

    As in a call: layers that replace the output of their module are merged first, those that
    adapt its inputs last, and others in the order of the adapters.

    Raises:
        ZooError: if an adapter cannot be merged; the parameters before it are changed then.
    """
    found = [
        (name, *adapted)
        for name, adapter in find_adapters(model).items()
        if adapter.enabled
        for adapted in adapted_modules(model, adapter)
    ]
    for name, path, module, layer in sorted(found, key=lambda row: _order(row[3])):
        try:
            layer.merge(module)
        except ZooError as error:
            raise ZooError(f"adapter '{name}' at {path}: {error}") from error
    detach(model)


def _order(layer: AdapterLayer) -> int:
    if type(layer).replaces_output:
        return 0
    return 1 if type(layer).adapt_inputs is AdapterLayer.adapt_inputs else 2
