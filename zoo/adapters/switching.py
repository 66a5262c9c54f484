"""Selects which adapters of a model are applied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from zoo.acceleration import accelerate, is_accelerated
from zoo.adapters.attachment import check_replaced, find_adapters
from zoo.errors import ZooError, suggest


def use_adapters(model: nn.Module, *names: str) -> None:
    """Apply the adapters with these names and no others; without a name, apply none.

    Raises:
        ZooError: if the model has no adapter with a name, or two of them replace the output of
            the same module.
    """
    adapters = find_adapters(model)
    for name in names:
        if name not in adapters:
            raise ZooError(f"the model has no adapter '{name}'{suggest(name, adapters)}")
    check_replaced(model, names)
    for name, adapter in adapters.items():
        adapter.enabled = name in names
    _renew_accelerations(model)


@contextmanager
def without_adapters(model: nn.Module) -> Iterator[None]:
    """Apply no adapter of a model inside the block."""
    used = [name for name, adapter in find_adapters(model).items() if adapter.enabled]
    use_adapters(model)
    try:
        yield
    finally:
        use_adapters(model, *used)


def _renew_accelerations(model: nn.Module) -> None:
    """Attach new accelerations, because captured graphs contain the adapters of their capture."""
    if any(is_accelerated(module) for module in model.modules()):
        accelerate(model, enabled=False)
        accelerate(model, enabled=True)
