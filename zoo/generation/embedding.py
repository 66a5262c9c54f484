"""Vectors of raw texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from zoo.data.preprocessing import build_preprocessors
from zoo.errors import InputError, ZooError
from zoo.generation.raw_inputs import OneInput, as_inputs, encode_inputs, is_one_input, to_list
from zoo.interfaces import Model
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.registry.component_registry import ComponentRegistry


@torch.no_grad()
def embed(
    model: Model,
    inputs: OneInput | Sequence[Any],
    *,
    side: str = "source",
    batch_size: int = 32,
    registry: ComponentRegistry | None = None,
) -> Tensor:
    """Return one vector for each input, [N, D], in evaluation mode; of one input instead of a list
    its vector, [D].

    Args:
        model: a model with the method `embed`, such as a sentence encoder.
        inputs: texts, or what the preprocessor of the model's source takes.
        side: "source", or "target" for inputs of the second tower of a model with two.
        batch_size: number of inputs that are encoded together.

    Raises:
        DataError: if an input cannot be used.
    """
    compute = getattr(model, "embed", None)
    if compute is None:
        raise ZooError(f"model '{model.name}' does not compute one vector for each input")
    if batch_size < 1:
        raise ZooError(f"batch_size is {batch_size}, but must be at least 1")
    preprocessors = build_preprocessors(model, registry=registry)
    if side not in preprocessors:
        raise ZooError(
            f"model '{model.name}' has no preprocessor for '{side}'; add it to the section "
            "'preprocessing' of the spec, or call model.embed with a batch of tensors"
        )
    values = to_list(as_inputs(inputs))
    vectors = []
    with evaluation_mode(model):
        for start in range(0, len(values), batch_size):
            rows = [{side: value} for value in values[start : start + batch_size]]
            try:
                batch = encode_inputs(model, preprocessors, rows)
            except InputError as error:
                raise InputError(error.message, start + error.number) from None
            vectors.append(compute(batch))
    found = torch.cat(vectors)
    return found[0] if is_one_input(inputs) else found
