"""The encoder's part of generation, recorded as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from zoo.generation.recorded_calls import call_recorded
from zoo.generation.tensors_by_name import flatten_memory, unflatten_memory
from zoo.interfaces import Memory, Model


def encode_recorded(
    model: Model, encode: Callable[[Any, Tensor], Memory], source: Tensor
) -> Memory:
    """Return ``encode(model, source)``, from a CUDA graph as `call_recorded` does.

    Args:
        encode: a function of the class of the model, not a bound method.
    """
    return unflatten_memory(call_recorded(model, _encode, {"source": source}, encode))


def _encode(
    model: Model, inputs: Mapping[str, Tensor], encode: Callable[[Any, Tensor], Memory]
) -> dict[str, Tensor]:
    return flatten_memory(encode(model, inputs["source"]))
