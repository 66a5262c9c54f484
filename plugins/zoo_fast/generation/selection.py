"""Selection of the next tokens, from the logits where the sampler supports it."""

from __future__ import annotations

from torch import Tensor

from zoo.generation import search as reference
from zoo.generation.prompts import PromptBatch
from zoo.generation.search import NextTokens, force_prompts
from zoo.plugin import DecodeRequest, SearchState
from zoo_fast.generation.known_samplers import known_sampler


def select_next(
    search: SearchState, logits: Tensor, request: DecodeRequest, prompts: PromptBatch
) -> NextTokens:
    """Compute `zoo.generation.search.select_next`."""
    step = None if request.filters else known_sampler(request.sampler).step
    selected = None if step is None else step(request.sampler, logits, search, request.generator)
    if selected is None:
        return reference.select_next(search, logits, request, prompts)
    return force_prompts(selected, search, prompts)
