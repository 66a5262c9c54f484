"""A log record for each Triton kernel of the fast lane that is compiled."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from typing import Any

from zoo_fast.device.triton_support import is_installed

_LOG = logging.getLogger("zoo.fast")
_PACKAGE = __name__.partition(".")[0]
_LOCK = threading.Lock()


def log_compiled_kernels() -> None:
    """Log each kernel of this package that is compiled from now on, with the time it takes.

    Kernels that Triton finds in its cache on the disk are not logged.
    """
    if not is_installed():
        return
    from triton import knobs

    with _LOCK:
        listener = knobs.compilation.listener
        # Not a flag: the listener of a scope of knobs ends with it.
        if not isinstance(listener, functools.partial) or listener.func is not _log_kernel:
            knobs.compilation.listener = functools.partial(_log_kernel, listener)


def _log_kernel(
    other: Callable[..., None] | None, *, src: Any, times: Any, cache_hit: bool, **more: Any
) -> None:
    if other is not None:
        other(src=src, times=times, cache_hit=cache_hit, **more)
    module = getattr(getattr(src, "fn", None), "__module__", "")
    if not cache_hit and module.partition(".")[0] == _PACKAGE:
        seconds = times.total / 1e6
        _LOG.info("compiled the kernel %s in %.1f s, once for this machine", src.name, seconds)
