"""Detection of PyTorch hooks on modules that a fused path would not call."""

from torch import nn

from zoo.interfaces.module_parts import each_part


def has_hooks(module: nn.Module) -> bool:
    """Return whether a forward or backward hook is registered on the module or inside it.

    A fused path computes the result of its submodules without calling them. The caller then uses
    the reference path, so that the hooks run.
    """
    return any(map(has_own_hooks, each_part(module)))


def has_own_hooks(module: nn.Module) -> bool:
    """Return whether a forward or backward hook is registered on the module itself."""
    own = module.__dict__  # attributes of a module take longer
    return bool(
        own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
    )
