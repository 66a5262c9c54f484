"""Binding of accelerations to models, from outside."""

from zoo.acceleration.binding import accelerate, is_accelerated, plain_class, reference
from zoo.acceleration.module_hooks import has_hooks, has_own_hooks
from zoo.acceleration.paths import ModulePath, module_paths
from zoo.acceleration.preparation import finish_preparation, prepare

__all__ = [
    "ModulePath",
    "accelerate",
    "finish_preparation",
    "has_hooks",
    "has_own_hooks",
    "is_accelerated",
    "module_paths",
    "plain_class",
    "prepare",
    "reference",
]
