"""Captured decoding steps that are kept for later calls."""

from __future__ import annotations

import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace

import torch

from zoo.generation.search import DecodeState
from zoo.plugin import Decoder, DecodeRequest
from zoo_fast.generation.captured_calls import Inspected, inspect_module
from zoo_fast.generation.captured_steps import CapturedSteps, flatten
from zoo_fast.generation.kept_graphs import max_bytes
from zoo_fast.generation.search_settings import SearchSettings, settings_of

MAX_KEPT = 16
"""Captured steps that are kept for each decoder."""

_LOG = logging.getLogger("zoo.fast")


def why_not_captured(decoder: Decoder, device: torch.device, steps: int) -> str | None:
    """Return the reason why the steps of a decoder are not captured as a CUDA graph, or None."""
    return inspect_module(decoder, device)[0] or _why_not_steps(steps)


def _why_not_steps(steps: int) -> str | None:
    return "at most one token is generated" if steps < 2 else None


_LOCK = threading.Lock()
_KEPT: weakref.WeakKeyDictionary[Decoder, OrderedDict[Hashable, CapturedSteps]] = (
    weakref.WeakKeyDictionary()
)


def captured_steps(
    decoder: Decoder,
    request: DecodeRequest,
    state: DecodeState,
    inspected: Inspected | None = None,
    settings: SearchSettings | None = None,
) -> CapturedSteps | None:
    """Return the steps for inputs of this shape, new or of a previous call with the same shapes.

    None if the step cannot be captured, or a previous call has not ended yet; the reason is logged.
    The steps of a decoder are deleted with it.

    Args:
        inspected: the result of `inspect_module`, if it is known.
        settings: the result of `settings_of`, if it is known.
    """
    reason, weights = inspected or inspect_module(decoder, state.invalid.device)
    reason = reason or _why_not_steps(state.prompts.steps)
    if reason is None and not state.search.scores.numel():
        reason = "the batch is empty"
    if reason is None:
        settings = settings or settings_of(request, state.prompts)
        steps = _find_steps(decoder, request, state, weights, settings)
        reason = "a previous call has not ended" if steps.is_running else steps.reason
        if reason is None:
            return steps
    _LOG.debug("decoder '%s': steps are not captured as a CUDA graph: %s", decoder.name, reason)
    return None


def _find_steps(
    decoder: Decoder,
    request: DecodeRequest,
    state: DecodeState,
    weights: Hashable,
    settings: SearchSettings,
) -> CapturedSteps:
    # What a captured step depends on, besides the values of tensors of fixed address.
    key = (
        type(state.state),
        tuple((name, t.shape, t.dtype, t.device) for name, t in flatten(state).items()),
        weights,
        state.prompts.prefix.shape[1] if state.prompts.suffix.shape[1] else None,
        settings,
        request.generator is None,
    )
    limit = max_bytes(state.invalid.device)
    with _LOCK:
        kept = _KEPT.setdefault(decoder, OrderedDict())
        steps = kept.get(key)
        if steps is None:
            own = replace(settings.request, generator=request.generator)  # copies of its parts
            steps = kept[key] = CapturedSteps(decoder, own, state)
        kept.move_to_end(key)
        while len(kept) > MAX_KEPT or sum(each.bytes for each in kept.values()) > limit:
            kept.popitem(last=False)
    return steps
