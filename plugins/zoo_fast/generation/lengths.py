"""Lengths that captured graphs are made for, so that inputs of similar length share a graph.

A graph is captured for one shape, after calls that take much longer. If the calls of a model have
many lengths, prompts, caches and sources are padded to few lengths, and the padding is masked.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from zoo.generation.prompts import PromptBatch
from zoo.plugin import Decoder, Encoder, Memory
from zoo_fast.by_class import ByClass
from zoo_fast.device.triton_support import why_not_triton_on
from zoo_fast.generation.fixed_search import RoomyPrompts

UNLIMITED = sys.maxsize
EXACT_LENGTHS = 4
"""Lengths of calls with a module for which nothing is padded: a padded call takes longer."""

_SEEN: weakref.WeakKeyDictionary[nn.Module, set[tuple[int, ...]]] = weakref.WeakKeyDictionary()


@ByClass
def step_limit(decoder: Decoder) -> int | None:
    """Return the largest ``steps`` of `Decoder.start`, if the logits do not depend on it."""


@ByClass
def source_limit(encoder: Encoder) -> int | None:
    """Return the length up to which a source may be padded."""


def shares_graphs(device: torch.device) -> bool:
    """Whether lengths are padded: on a GPU, and where tests interpret its kernels."""
    return device.type == "cuda" or why_not_triton_on(device.type) is None


def lengths_vary(module: nn.Module, device: torch.device, *lengths: int) -> bool:
    """Note the lengths of a call, and return whether those of the calls with a module are so many
    that calls of similar length are to share graphs."""
    if not shares_graphs(device):
        return False
    seen = _SEEN.setdefault(module, set())
    if len(seen) <= EXACT_LENGTHS:
        seen.add(lengths)
    return len(seen) > EXACT_LENGTHS


def round_up(length: int, *, multiple: int, parts: int) -> int:
    """Return the next multiple of a number and of a part of the next power of two.

    The result is at most ``multiple``, or a fraction 2 / parts of the length, longer.
    """
    power = 1 << max(length - 1, 0).bit_length()
    step = max(multiple, power // parts)
    return -(-length // step) * step


def prompt_length(length: int) -> int:
    """Return the length to which prompts are padded: all tokens are computed."""
    return round_up(length, multiple=8, parts=8)


def cache_length(length: int) -> int:
    """Return the length of caches, whose unused part is not read."""
    return round_up(length, multiple=64 if length > 64 else 16, parts=16)


def source_length(length: int) -> int:
    """Return the length to which the tokens of sources are padded."""
    return round_up(length, multiple=16, parts=16)


def pad_memory(memory: Memory, length: int) -> Memory:
    """Return the memory with masked states up to a length."""
    extra = length - memory.mask.shape[1]
    tokens = None if memory.tokens is None else F.pad(memory.tokens, (0, extra))
    states, mask = F.pad(memory.states, (0, 0, 0, extra)), F.pad(memory.mask, (0, extra))
    return replace(memory, states=states, mask=mask, tokens=tokens)


def make_room(prompts: PromptBatch, decoder: Decoder, padded: int = 0) -> PromptBatch:
    """Return prompts with columns for caches of a length that graphs share.

    Args:
        padded: length of the padded prompts, which the caches hold too.
    """
    limit = step_limit(decoder)
    if limit is None:
        return prompts
    steps = prompts.total_length - 1
    room = min(cache_length(max(steps, padded)), limit)
    return RoomyPrompts.of(prompts, max(steps, room) + 1)
