"""Selection of the next tokens, from the logits where the sampler supports it."""

from __future__ import annotations

import math
from dataclasses import replace

from torch import Tensor

from zoo.generation import search as reference
from zoo.generation.prompts import PromptBatch
from zoo.generation.search import NextTokens, apply_filters, force_prompts
from zoo.plugin import DecodeRequest, SearchState
from zoo_fast.generation.known_filters import is_capturable
from zoo_fast.generation.known_samplers import known_sampler


def select_next(
    search: SearchState, logits: Tensor, request: DecodeRequest, prompts: PromptBatch
) -> NextTokens:
    """Compute `zoo.generation.search.select_next`.

    The logits of a single hypothesis are filtered before they are normalised, so the rest of the
    selection is that without filters.
    """
    if request.filters and logits.shape[1] == 1:
        plain = replace(request, filters=())
        scores = apply_filters(request.filters, logits.float(), search)
        filtered = select_next(search, scores, plain, prompts)
        return filtered._replace(nan_or_inf=~(logits.amax(dim=-1) < math.inf))
    step = None if request.filters else known_sampler(request.sampler).step
    selected = None if step is None else step(request.sampler, logits, search, request.generator)
    if selected is None:
        return reference.select_next(search, logits, request, prompts)
    return force_prompts(selected, search, prompts)


def can_capture(request: DecodeRequest) -> bool:
    """Whether the selection can be captured in a CUDA graph."""
    filters = request.filters
    return not filters or (request.sampler.width == 1 and all(map(is_capturable, filters)))
