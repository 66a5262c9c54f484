"""Attaches adapters to the modules of a model, with module hooks.

The parameters of the model keep their names. Those of an adapter are below
``adapters.NAME.layers``, followed by the path of the module they adapt. Modules with hooks are not
skipped by accelerations, so an adapted module always computes with its adapters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from zoo.errors import InvalidParameter, ZooError
from zoo.interfaces.adapter import Adapter, AdapterLayer

ADAPTERS = "adapters"
"""The name of the module of a model that contains its adapters."""
_CALL_HOOKS = (
    *("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"),
    *("_backward_hooks", "_backward_pre_hooks"),
)
"""Attributes of a module with the hooks that a call of it runs."""


class _Hook:
    """A hook of an adapted module; copied with the model, it refers to the copied adapter."""

    def __init__(self, adapter: Adapter, layer: AdapterLayer) -> None:
        self.adapter, self.layer = adapter, layer


class _InputHook(_Hook):
    """Forward pre-hook of an adapted module."""

    def __call__(
        self, module: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not self.adapter.enabled:
            return inputs, options
        return self.layer.adapt_inputs(module, inputs, options)


class _OutputHook(_Hook):
    """Forward hook of an adapted module."""

    def __call__(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        if not self.adapter.enabled:
            return output
        return self.layer.adapt_output(module, inputs, output)


def attach(model: nn.Module, name: str, adapter: Adapter) -> None:
    """Freeze the parameters of a model, and attach an adapter to it under a name.

    Raises:
        InvalidParameter: if a pattern matches no module that can be adapted.
        ZooError: if the name is taken, or a module cannot be adapted.
    """
    adapters = find_adapters(model)
    if not name.isidentifier() or name in adapters:
        reason = "is taken" if name in adapters else "should be letters, digits and underscores"
        raise ZooError(f"the name '{name}' of an adapter {reason}")
    modules = _own_modules(model)
    with _without_hooks(modules.values()):  # a copied module would have copies of other adapters
        layers = list(adapter.build_layers(modules))
    for path, layer in layers:
        _add(adapter.layers, path, layer)
        layer.copy_values(modules[path])
        _add_hooks(modules[path], adapter, layer)
    if not adapters:
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        model.add_module(ADAPTERS, nn.Module())
    model.get_submodule(ADAPTERS).add_module(name, adapter.train(model.training))


def detach(model: nn.Module) -> None:
    """Remove all adapters of a model; its parameters stay frozen."""
    for module in model.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            for key in [key for key, hook in hooks.items() if isinstance(hook, _Hook)]:
                del hooks[key]
                module._forward_pre_hooks_with_kwargs.pop(key, None)
    model._modules.pop(ADAPTERS, None)


def find_adapters(model: nn.Module) -> dict[str, Adapter]:
    """Return the adapters of a model by name."""
    owner = model._modules.get(ADAPTERS)
    return {} if owner is None else dict(owner.named_children())  # type: ignore[arg-type]


def check_replaced(model: nn.Module, names: Collection[str] | None = None) -> None:
    """Raise InvalidParameter if two adapters replace the output of the same module.

    Args:
        names: the adapters that are used together; default: all.
    """
    replaced: dict[str, str] = {}
    for name, adapter in find_adapters(model).items():
        if names is not None and name not in names:
            continue
        for path, _, layer in adapted_modules(model, adapter):
            if type(layer).replaces_output and path in replaced:
                raise InvalidParameter(
                    "targets",
                    f"the output of {path} is already replaced by adapter '{replaced[path]}'; "
                    f"adapter '{name}' cannot be used together with it",
                )
            if type(layer).replaces_output:
                replaced[path] = name


def adapted_modules(
    model: nn.Module, adapter: Adapter
) -> Iterator[tuple[str, nn.Module, AdapterLayer]]:
    """Yield path, module and layer of each module that an adapter adapts."""
    for path, layer in adapter.layers.named_modules():
        if isinstance(layer, AdapterLayer):
            yield path, model.get_submodule(path), layer


@torch.no_grad()
def reset_adapters(model: nn.Module, seed: int, names: Collection[str] | None = None) -> None:
    """Set the initial values of adapters, after the weights of the model have been loaded.

    Args:
        names: names of the adapters; default: all.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        for name, adapter in find_adapters(model).items():
            if names is not None and name not in names:
                continue
            for _, module, layer in adapted_modules(model, adapter):
                layer.reset_parameters()
                layer.copy_values(module)


def _own_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Return the modules of a model by path, without adapters; shared ones at their first path."""
    return {
        path: module
        for path, module in model.named_modules()
        if path and path.partition(".")[0] != ADAPTERS
    }


def _add(owner: nn.Module, path: str, layer: AdapterLayer) -> None:
    """Add a layer below a module under a path, whose steps become modules."""
    *above, last = path.split(".")
    for step in above:
        if step not in owner._modules:
            owner.add_module(step, nn.Module())
        owner = owner.get_submodule(step)
    owner.add_module(last, layer)


@contextmanager
def _without_hooks(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Remove the hooks of calls of modules inside the block."""
    removed = [(module, name, vars(module)[name]) for module in modules for name in _CALL_HOOKS]
    try:
        for module, name, hooks in removed:
            vars(module)[name] = type(hooks)()
        yield
    finally:
        for module, name, hooks in removed:
            vars(module)[name] = hooks


def _add_hooks(module: nn.Module, adapter: Adapter, layer: AdapterLayer) -> None:
    if type(layer).adapt_inputs is not AdapterLayer.adapt_inputs:
        module.register_forward_pre_hook(_InputHook(adapter, layer), with_kwargs=True)
    if type(layer).adapt_output is not AdapterLayer.adapt_output:
        first = type(layer).replaces_output
        module.register_forward_hook(_OutputHook(adapter, layer), prepend=first)
