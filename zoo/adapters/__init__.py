"""Adapters of models: attached from outside, switched, and merged."""

from zoo.adapters.attachment import (
    ADAPTERS,
    adapted_modules,
    attach,
    detach,
    find_adapters,
    reset_adapters,
)
from zoo.adapters.merging import merge_layers
from zoo.adapters.switching import use_adapters, without_adapters

__all__ = [
    "ADAPTERS",
    "adapted_modules",
    "attach",
    "detach",
    "find_adapters",
    "merge_layers",
    "reset_adapters",
    "use_adapters",
    "without_adapters",
]
