"""Detection of PyTorch hooks on modules that a fused path would not call."""

from torch import nn


def has_hooks(module: nn.Module) -> bool:
    """Return whether a forward or backward hook is registered on the module or inside it.

    A fused path computes the result of its submodules without calling them. The caller then uses
    the reference path, so that the hooks run.
    """
    return any(
        inner._forward_hooks
        or inner._forward_pre_hooks
        or inner._backward_hooks
        or inner._backward_pre_hooks
        for inner in module.modules()
    )
