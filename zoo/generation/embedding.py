"""Vectors of raw texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.data.preprocessing import build_preprocessors
from zoo.data.tokenizer import Tokenizer
from zoo.errors import InputError, ZooError, truncate
from zoo.generation.raw_inputs import OneInput, as_inputs, encode_inputs, is_one_input, to_list
from zoo.interfaces import Model, Preprocessor
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.registry.component_registry import ComponentRegistry


@torch.no_grad()
def embed(
    model: Model,
    inputs: OneInput | Sequence[Any],
    *,
    side: str = "source",
    prompt: str | None = None,
    truncate_dim: int | None = None,
    normalise: bool = False,
    batch_size: int = 32,
    registry: ComponentRegistry | None = None,
) -> Tensor:
    """Return one vector for each input, [N, D], in evaluation mode; of one input instead of a list
    its vector, [D].

    Args:
        model: a model with the method `embed`, such as a sentence encoder.
        inputs: texts, or what the preprocessor of the model's source takes.
        side: "source", or "target" for inputs of the second tower of a model with two.
        prompt: the name of one of the model's prompts, such as "query", or a text that is inserted
            before each input, such as "query: "; "" for none. Default: the model's default prompt.
        truncate_dim: number of features of the vectors, the first ones. Default: that of the model.
        normalise: return vectors of length one, which a model that normalises them returns
            unless they are truncated.
        batch_size: number of inputs that are encoded together.

    Raises:
        DataError: if an input cannot be used.
        ZooError: if the model has no prompt of this name, or not as many features.
    """
    compute = getattr(model, "embed", None)
    if compute is None:
        raise ZooError(f"model '{model.name}' does not compute one vector for each input")
    if batch_size < 1:
        raise ZooError(f"batch_size is {batch_size}, but must be at least 1")
    if truncate_dim is not None and truncate_dim < 1:
        raise ZooError(f"truncate_dim is {truncate_dim}, but must be at least 1")
    preprocessors = build_preprocessors(model, registry=registry)
    if side not in preprocessors:
        raise ZooError(
            f"model '{model.name}' has no preprocessor for '{side}'; add it to the section "
            "'preprocessing' of the spec, or call model.embed with a batch of tensors"
        )
    values, options = to_list(as_inputs(inputs)), dict[str, int]()
    text = find_prompt(model, prompt)
    if text:
        values = _insert_prompt(text, values)
        if not getattr(model, "include_prompt", True):
            options["prompt_length"] = _prompt_length(model, preprocessors, side, text)
    if truncate_dim is not None and hasattr(model, "truncate_dim"):
        options["truncate_dim"] = truncate_dim
    vectors = []
    with evaluation_mode(model):
        for start in range(0, len(values), batch_size):
            rows = [{side: value} for value in values[start : start + batch_size]]
            try:
                batch = encode_inputs(model, preprocessors, rows)
            except InputError as error:
                raise InputError(error.message, start + error.number) from None
            vectors.append(compute(batch, **options))
    found = torch.cat(vectors)
    if truncate_dim is not None and truncate_dim > found.shape[1]:
        raise ZooError(
            f"truncate_dim is {truncate_dim}, but the vectors of model '{model.name}' have "
            f"{found.shape[1]} features"
        )
    found = found[:, :truncate_dim]
    found = F.normalize(found, dim=-1) if normalise else found
    return found[0] if is_one_input(inputs) else found


def find_prompt(model: Model, prompt: str | None) -> str:
    """Return the text of a prompt, given its name or the text itself; "" for none.

    Raises:
        ZooError: if it is a single word, which is no text to insert, but not a name either.
    """
    prompts: Mapping[str, str] = getattr(model, "prompts", {})
    if prompt is None:
        default = getattr(model, "default_prompt", None)
        return "" if default is None else prompts[default]
    if prompt in prompts:
        return prompts[prompt]
    if re.fullmatch(r"[\w-]+", prompt):
        raise ZooError(
            f"model '{model.name}' has no prompt named '{truncate(prompt, 80)}' (prompts: "
            f"{', '.join(prompts) or 'none'}); a text to insert has a space or a punctuation mark, "
            f"such as '{truncate(prompt, 80)}: '"
        )
    return prompt


def _insert_prompt(prompt: str, values: Sequence[Any]) -> list[str]:
    for number, value in enumerate(values, 1):
        if not isinstance(value, str):
            raise InputError("a prompt is inserted before texts only", number)
    return [prompt + value for value in values]


def _prompt_length(
    model: Model, preprocessors: Mapping[str, Preprocessor], side: str, prompt: str
) -> int:
    """Return the number of tokens of a prompt, without an end token."""
    tokens = encode_inputs(model, preprocessors, [{side: prompt}])[side][0].tolist()
    tokenizer = (model.tokenizer or {}).get(side)
    ends = Tokenizer(tokenizer).added_ids if isinstance(tokenizer, str) else frozenset()
    field = (model.batch_schema(inference=True) or {})[side]
    return len(tokens) - max(len(field.suffix), int(tokens[-1] in ends))
