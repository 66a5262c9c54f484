"""Binding of accelerations to models, from outside."""

from zoo.acceleration.binding import (
    ModulePath,
    accelerate,
    is_accelerated,
    module_paths,
    plain_class,
    reference,
)
from zoo.acceleration.conditions import has_hooks, has_own_hooks
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
