"""The batch that `zoo.generate` passes to a model: texts or token IDs, images or audio."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zoo.data.padding import MASK, length_mask, pad_arrays
from zoo.data.preprocessing import build_preprocessors
from zoo.data.special_tokens import add_bos, add_special_tokens
from zoo.data.tokenizer import Tokenizer
from zoo.errors import InputError, ZooError, truncate
from zoo.generation.chat import encode_conversations, is_conversation
from zoo.generation.raw_inputs import encode_inputs, model_device, to_list
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry


def encode_batch(
    model: Model, inputs: Sequence[Any], registry: ComponentRegistry | None
) -> dict[str, Tensor]:
    """Return a batch of token IDs [B, S], padded on the right, or of images or audio."""
    preprocessors = build_preprocessors(model, registry=registry)
    preprocessor = preprocessors.get("source" if model.generation_input == "source" else "target")
    if preprocessor is not None and preprocessor.content not in ("text", "messages"):
        examples = [{"source": value} for value in to_list(inputs)]
        return encode_inputs(model, {"source": preprocessor}, examples)
    is_list = isinstance(inputs, Sequence) and not isinstance(inputs, str)
    if not is_list or not all(isinstance(row, Iterable) for row in inputs):
        found = truncate(repr(inputs), 80)
        raise ZooError(f"inputs is {found}; expected a list of texts, or of lists of token IDs")
    if not inputs:
        raise ZooError("inputs is empty; expected at least one text or list of token IDs")
    assert model.generation_input is not None  # checked by build_request
    side = "source" if model.generation_input == "source" else "target"
    embedding, vocab_size = model.get_embedding(side), model.vocab_size(side)
    if not vocab_size:
        raise ZooError(
            f"model '{model.name}' does not take tokens (its {side} embedding is "
            f"'{embedding.name}') and has no preprocessor for '{side}'; add it to the section "
            "'preprocessing' of the spec, or call model.generate with a batch of tensors"
        )
    takes_messages = preprocessor is not None and preprocessor.content == "messages"
    if is_conversation(inputs[0]) and not takes_messages:
        return _pad_rows(model, encode_conversations(model, inputs), embedding.padding)
    if preprocessor is not None and (isinstance(inputs[0], str) or is_conversation(inputs[0])):
        if model.generation_input == "source":
            field = (model.batch_schema() or {})["source"]
            encoded = preprocessor.encode_many(inputs)
            encoded = [add_special_tokens(row, field) if row.size else row for row in encoded]
            encoded = [
                row[:0] if isinstance(text, str) and not text.strip() else row
                for row, text in zip(encoded, inputs, strict=True)
            ]
        else:
            encoded = preprocessor.encode_prompts(inputs)
        rows = [row.tolist() for row in encoded]
    elif isinstance(inputs[0], str):
        tokenizer = get_tokenizer(model, side)
        if tokenizer is None:
            raise ZooError(
                f"model '{model.name}' has no tokenizer; pass token IDs (command line: --ids), or "
                "add a tokenizer with the option --tokenizer of zoo compose or zoo import"
            )
        rows = tokenizer.encode(inputs)
        if model.generation_input == "source":  # the tokenizer may add an end token
            rows = [row if text.strip() else [] for row, text in zip(rows, inputs, strict=True)]
    else:
        rows = [_to_ids(row, f"input {number}") for number, row in enumerate(inputs, 1)]
    if model.generation_input == "prompt":
        rows = [add_bos(row, model.bos) for row in rows]
    for number, row in enumerate(rows, 1):
        if not row:
            raise InputError("it is empty; expected at least one token", number)
        invalid = [token for token in row if not 0 <= token < vocab_size]
        if invalid:
            raise InputError(
                f"it contains token ID {invalid[0]}, out of range for a vocabulary of "
                f"{vocab_size:,} tokens",
                number,
            )
    return _pad_rows(model, rows, embedding.padding)


def encode_prompt(model: Model, prompt: str | Sequence[int], batch: int) -> dict[str, Tensor]:
    """Return the part of a batch with the tokens that targets start with, [B, P], after bos."""
    if model.generation_input == "prompt":
        raise ZooError(f"model '{model.name}' continues its inputs, so it does not take a prompt")
    if "prompt" not in (model.batch_schema(inference=True) or {}):
        raise ZooError(f"model '{model.name}' does not take a prompt")
    if isinstance(prompt, str):
        tokenizer = get_tokenizer(model, "target")
        if tokenizer is None:
            raise ZooError(
                f"model '{model.name}' has no tokenizer for targets; pass the prompt as token IDs "
                "(command line: --ids)"
            )
        unknown = tokenizer.unknown([prompt])
        if unknown:
            raise ZooError(f"the tokenizer does not know '{unknown[0]}' of the prompt")
        ids = tokenizer.encode_prompt(prompt)
    else:
        ids = _to_ids(prompt, "prompt")
    if not ids:
        raise ZooError("prompt is empty; expected at least one token")
    device = model_device(model)
    return {"prompt": torch.tensor(ids, dtype=torch.long, device=device).expand(batch, -1)}


def _pad_rows(model: Model, rows: Sequence[list[int]], padding: int | None) -> dict[str, Tensor]:
    """Return the batch of token IDs, with a mask if the model has no padding token."""
    assert model.generation_input is not None
    device = model_device(model)
    padded = pad_arrays([np.array(row, dtype=np.int64) for row in rows], padding or 0)
    batch = {model.generation_input: torch.from_numpy(padded).to(device)}
    lengths = [len(row) for row in rows]
    if padding is None and len(set(lengths)) > 1:
        if model.generation_input != "prompt":
            raise ZooError(
                f"model '{model.name}' has no padding token, so all inputs must have the same "
                f"length, but lengths are {sorted(set(lengths))}"
            )
        mask = length_mask(np.array(lengths), padded.shape[1])
        batch[MASK] = torch.from_numpy(mask).to(device)
    return batch


def _to_ids(row: Iterable[Any], name: str) -> list[int]:
    try:
        return [operator.index(token) for token in row]
    except TypeError:
        found = truncate(repr(row), 80)
        raise ZooError(f"{name} is {found}; expected a list of token IDs") from None


def get_tokenizer(model: Model, side: str) -> Tokenizer | None:
    """Return the tokenizer stored in a model for its source or target."""
    text = (model.tokenizer or {}).get(side)
    return None if text is None else Tokenizer(text)
