"""Building and running modules on the meta device at little cost."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

_DYNAMO = "torch._dynamo"


class SkipInit(TorchFunctionMode):
    """Context manager that skips every in-place operation on the values of an `nn.Parameter`.

    Parameters on the meta device, and those that are loaded later, need no initialisation.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        target = args[0] if args else (kwargs or {}).get("tensor")
        name = getattr(func, "__name__", "")
        is_inplace = name.endswith("_") and not name.endswith("__") and name != "requires_grad_"
        if isinstance(target, nn.Parameter) and is_inplace:
            return target
        return func(*args, **(kwargs or {}))


@contextmanager
def skip_dynamo_import() -> Iterator[None]:
    """Run operations on the meta device without importing ``torch._dynamo``.

    The first element-wise operation on a meta tensor imports it, which takes longer than the
    rest of a check, only to exclude the operation from compilation. Inside the block a stand-in
    replaces the module; reading any attribute but ``disable`` imports the real one. The stand-in
    is an entry of ``sys.modules``, so this is for programs with a single thread.
    """
    stand_in = _DynamoStandIn()
    sys.modules.setdefault(_DYNAMO, stand_in)
    try:
        yield
    finally:
        stand_in.remove()


class _DynamoStandIn(ModuleType):
    """Provides ``torch._dynamo.disable`` while nothing is compiled."""

    def __init__(self) -> None:
        super().__init__(_DYNAMO)
        self.functions: list[Callable[..., Any]] = []

    def disable(
        self, fn: Callable[..., Any], recursive: bool = True, *, wrapping: bool = True
    ) -> Callable[..., Any]:
        self.functions.append(fn)
        return fn

    def remove(self) -> None:
        if sys.modules.get(_DYNAMO) is self:
            del sys.modules[_DYNAMO]
        for fn in self.functions:
            vars(fn).pop("__dynamo_disable", None)  # torch caches the result of `disable` here
        self.functions.clear()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # read by `inspect`, which searches all modules for a file
            raise AttributeError(name)
        self.remove()
        return getattr(importlib.import_module(_DYNAMO), name)
