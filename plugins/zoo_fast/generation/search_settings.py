"""What a captured search depends on, besides the values of tensors."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from zoo.acceleration import accelerate, is_accelerated, plain_class
from zoo.generation.prompts import PromptBatch
from zoo.interfaces import Component
from zoo.plugin import DecodeRequest
from zoo_fast.generation.known_samplers import is_known


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a search; equal ones select the same tokens from the same logits.

    Attributes:
        eos_ids: the end tokens.
        pad: the padding token.
        selects_pad: whether it can be selected.
        max_length: the number of new tokens; None for samplers of known classes, for which it is a
            tensor.
        components: the parameters of the sampler and of the filters.
        request: copies of the sampler and the filters, since their attributes can change; without a
            generator.
    """

    eos_ids: tuple[int, ...]
    pad: int
    selects_pad: bool
    max_length: int | None
    components: Hashable
    request: DecodeRequest = field(compare=False)


def settings_of(request: DecodeRequest, prompts: PromptBatch) -> SearchSettings:
    """Return the settings of a search."""
    parts = (request.sampler, *request.filters)
    components = tuple(map(parameters_of, parts))
    sampler, *filters = map(_copy, parts, components)
    kept = replace(request, sampler=sampler, filters=tuple(filters), generator=None)
    max_length = None if is_known(request.sampler) else prompts.max_length
    eos_ids, pad, selects_pad = prompts.eos_ids, prompts.pad, prompts.selects_pad
    return SearchSettings(eos_ids, pad, selects_pad, max_length, components, kept)


def _copy(component: Any, parameters: Hashable) -> Any:
    """Return a copy; the component itself if it is its own key, as those without a hash."""
    if parameters is component:
        return component
    copied = copy.copy(component)
    return accelerate(copied) if is_accelerated(component) else copied


def parameters_of(component: Any) -> Hashable:
    """Return the type and attributes of a component; the component itself if one has no hash.

    A copy has no accelerations.
    """
    try:
        values = tuple(sorted((k, _key(v)) for k, v in vars(copy.copy(component)).items()))
        hash(values)
    except TypeError:
        return component  # type: ignore[no-any-return]
    return plain_class(component), is_accelerated(component), values


def _key(value: Any) -> Any:
    """Return the parameters of components in an attribute, another value itself."""
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    return parameters_of(value) if isinstance(value, Component) else value
