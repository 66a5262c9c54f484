"""Captured decoding steps that are kept for later calls."""

from __future__ import annotations

import logging
import weakref
from collections import OrderedDict
from collections.abc import Hashable

import torch
from torch import Tensor

from zoo.generation.prompts import PromptBatch
from zoo.generation.search import DecodeState
from zoo.plugin import Decoder, DecodeRequest
from zoo_fast.generation.captured_calls import Inspected, inspect_module
from zoo_fast.generation.captured_steps import CapturedSteps, flatten
from zoo_fast.generation.search_settings import settings_of

MAX_KEPT = 8
"""Captured steps that are kept for each decoder."""
MAX_KEPT_FRACTION = 0.125
"""Fraction of the device's memory that the tensors of the kept steps of a decoder may take."""

_LOG = logging.getLogger(__name__)


def why_not_captured(decoder: Decoder, device: torch.device, steps: int) -> str | None:
    """Return the reason why the steps of a decoder are not captured as a CUDA graph, or None."""
    return inspect_module(decoder, device)[0] or _why_not_steps(steps)


def _why_not_steps(steps: int) -> str | None:
    return "at most one token is generated" if steps < 2 else None


_KEPT: weakref.WeakKeyDictionary[Decoder, OrderedDict[Hashable, CapturedSteps]] = (
    weakref.WeakKeyDictionary()
)


def captured_steps(
    decoder: Decoder,
    request: DecodeRequest,
    state: DecodeState,
    inspected: Inspected | None = None,
) -> CapturedSteps | None:
    """Return the steps for inputs of this shape, new or of a previous call with the same shapes.

    None if the step cannot be captured, or a previous call has not ended yet; the reason is logged.
    The steps of a decoder are deleted with it.

    Args:
        inspected: the result of `inspect_module`, if it is known.
    """
    reason, weights = inspected or inspect_module(decoder, state.invalid.device)
    reason = reason or _why_not_steps(state.prompts.steps)
    if reason is None and not state.search.scores.numel():
        reason = "the batch is empty"
    if reason is None:
        steps = _find_steps(decoder, request, state, weights)
        reason = "a previous call has not ended" if steps.is_running else steps.reason
        if reason is None:
            return steps
    _LOG.debug("decoder '%s': steps are not captured as a CUDA graph: %s", decoder.name, reason)
    return None


def _find_steps(
    decoder: Decoder, request: DecodeRequest, state: DecodeState, weights: Hashable
) -> CapturedSteps:
    kept = _KEPT.setdefault(decoder, OrderedDict())
    key = type(state.state), _key(weights, request, state.prompts, flatten(state))
    steps = kept.get(key)
    if steps is None:
        steps = kept[key] = CapturedSteps(decoder, request, state)
    kept.move_to_end(key)
    available = torch.cuda.get_device_properties(state.invalid.device).total_memory
    while (
        len(kept) > MAX_KEPT
        or sum(each.bytes for each in kept.values()) > MAX_KEPT_FRACTION * available
    ):
        kept.popitem(last=False)
    return steps


def _key(
    weights: Hashable, request: DecodeRequest, prompts: PromptBatch, tensors: dict[str, Tensor]
) -> Hashable:
    """Return what a captured step depends on, besides the values of tensors of fixed address."""
    return (
        tuple((name, t.shape, t.dtype, t.device) for name, t in tensors.items()),
        weights,
        prompts.prefix.shape[1],
        settings_of(request, prompts),
        request.generator is None,
    )
