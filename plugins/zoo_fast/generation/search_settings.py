"""What a captured search depends on, besides the values of tensors."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from zoo.acceleration import is_accelerated, plain_class
from zoo.generation.prompts import PromptBatch
from zoo.plugin import DecodeRequest


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a search; equal ones select the same tokens from the same logits.

    Attributes:
        parts: the parameters of the sampler and the filters.
        request: the sampler and the filters themselves.
    """

    eos_ids: tuple[int, ...]
    pad: int
    max_length: int
    parts: Hashable
    request: DecodeRequest = field(compare=False)


def settings_of(request: DecodeRequest, prompts: PromptBatch) -> SearchSettings:
    """Return the settings of a search."""
    parts = parameters_of(request.sampler), *map(parameters_of, request.filters)
    return SearchSettings(prompts.eos_ids, prompts.pad, prompts.max_length, parts, request)


def parameters_of(component: Any) -> Hashable:
    """Return the type and attributes of a component; the component itself if one has no hash.

    A copy has no accelerations.
    """
    try:
        values = tuple(sorted(vars(copy.copy(component)).items()))
        hash(values)
    except TypeError:
        return component  # type: ignore[no-any-return]
    return plain_class(component), is_accelerated(component), values
