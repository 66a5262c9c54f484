"""Preparation of first calls, while a model goes to its device."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import nn

from zoo.acceleration.binding import plain_class
from zoo.acceleration.conditions import is_off
from zoo.acceleration.current_device import with_index
from zoo.interfaces import Acceleration
from zoo.interfaces.module_parts import each_part
from zoo.registry.component_registry import ComponentRegistry, default_registry

_LOG = logging.getLogger(__name__)
_PREPARED: set[tuple[object, torch.device]] = set()
_NAME = "zoo-prepare"
_MAX_WAIT = 30.0
"""Seconds after which `finish_preparation` returns although a thread still prepares."""


def prepare(
    model: nn.Module, device: torch.device, registry: ComponentRegistry | None = None
) -> None:
    """Call `Acceleration.prepare` of the accelerations that serve parts of a model, in a thread.

    Each is called once in a process for a device other than the CPU. The model can be on the meta
    device.
    """
    if device.type in ("cpu", "meta") or is_off():
        return
    device = with_index(device)
    found = (registry or default_registry()).accelerations
    served = {cls for part in each_part(model) for cls in found.get(plain_class(part), ())}
    new = [cls for cls in served if _prepares(cls) and claim(cls, device)]
    if new:
        classes = sorted(new, key=lambda cls: cls.name)
        start_thread(partial(_run, classes, device), "accelerations")


def claim(what: object, device: torch.device) -> bool:
    """Note that something is prepared for a device; return False if it was before."""
    key = what, device
    if key in _PREPARED:
        return False
    _PREPARED.add(key)
    return True


def start_thread(function: Callable[[], None], what: str) -> None:
    """Call a function that prepares something in a thread, for whose end a fork waits."""
    try:
        threading.Thread(target=function, name=_NAME).start()
    except RuntimeError as error:  # there are too many
        _LOG.info("%s are not prepared: %s", what, error)


def finish_preparation() -> None:
    """Wait for the threads that prepare, once for each of them.

    A first call beside them would do the same work at the same time, which takes longer. A forked
    process would not get the imports that they have begun, but wait for them.
    """
    end = time.monotonic() + _MAX_WAIT
    for thread in threading.enumerate():
        # A thread that another one starts now is not alive yet.
        if thread.name == _NAME and thread.is_alive() and thread is not threading.current_thread():
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                thread.name = f"{_NAME}-late"  # not waited for again


def _prepares(cls: type[Acceleration]) -> bool:
    return cls.prepare.__func__ is not Acceleration.prepare.__func__  # type: ignore[attr-defined]


def _run(classes: Iterable[type[Acceleration]], device: torch.device) -> None:
    for cls in classes:
        try:
            cls.prepare(device)
        except Exception as error:  # the first call does it again, and reports it
            _LOG.info("acceleration '%s' is not prepared: %s", cls.name, error)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=finish_preparation)
