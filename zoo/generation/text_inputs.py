"""The batch that `zoo.generate` passes to a model: texts or token IDs, images or audio."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zoo.data.chat_template import CHAT, ChatTemplate
from zoo.data.padding import MASK, length_mask, pad_arrays
from zoo.data.preprocessing import build_preprocessors
from zoo.data.special_tokens import add_bos, add_special_tokens
from zoo.data.tokenizer import Tokenizer
from zoo.errors import InputError, ZooError, truncate
from zoo.generation.raw_inputs import encode_inputs, model_device, to_list
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry


def is_conversation(value: Any) -> bool:
    """Return whether an input is a list of messages."""
    return isinstance(value, Sequence) and len(value) > 0 and isinstance(value[0], Mapping)


def require_chat(model: Model) -> None:
    """Raise ZooError if a model takes no messages: without chat template or such a preprocessor."""
    preprocessors = build_preprocessors(model).values()
    if not any(preprocessor.content == "messages" for preprocessor in preprocessors):
        get_chat_template(model)


def get_chat_template(model: Model) -> ChatTemplate:
    """Return the chat template of a model; raise ZooError if it has none."""
    stored = model.tokenizer or {}
    if CHAT not in stored or model.generation_input != "prompt":
        raise ZooError(
            f"model '{model.name}' has no chat template; pass a prompt instead of messages "
            "(command line: without --chat)"
        )
    return ChatTemplate.from_json(stored[CHAT])


def encode_conversations(model: Model, conversations: Sequence[Any]) -> list[list[int]]:
    """Return the token IDs of each conversation, up to the start of the assistant's answer.

    The template writes the special tokens, so the tokenizer adds none.
    """
    template = get_chat_template(model)
    tokenizer = Tokenizer((model.tokenizer or {})["target"])
    rows = []
    for number, messages in enumerate(conversations, 1):
        check_messages(messages, number)
        text = template.render(messages, add_generation_prompt=True)
        rows.append(tokenizer.encode_formatted(text))
    return rows


def check_messages(messages: Any, number: int = 1) -> None:
    """Raise InputError unless a value is a list of messages with a role and a content."""
    if not is_conversation(messages):
        raise InputError(_expected(messages), number)
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(_expected(message), number)


def _expected(found: Any) -> str:
    return (
        f"it contains {truncate(repr(found), 80)}; expected messages such as "
        '[{"role": "user", "content": "Hello"}]'
    )


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


_MAX_SHOWN = 10


def takes_text(model: Model) -> bool:
    """Return whether the inputs of a model are texts."""
    side = "target" if model.generation_input == "prompt" else "source"
    return get_tokenizer(model, side) is not None


def describe_unknown(model: Model, texts: Iterable[str], *, is_output: bool = False) -> str | None:
    """Return a sentence that names the symbols or words which the model reads as unknown; None if
    it knows all of them, or does not take texts.

    Args:
        is_output: whether the texts are outputs that the model reads, not its inputs.
    """
    side = "target" if is_output or model.generation_input == "prompt" else "source"
    tokenizer = get_tokenizer(model, side)
    if tokenizer is None:
        return None
    preprocessing = ((model.spec or {}).get("preprocessing") or {}).get(side) or {}
    lowercase = preprocessing.get("lowercase", False)
    found = tokenizer.unknown(text.lower() if lowercase else text for text in texts)
    if not found:
        return None
    names = ", ".join(repr(truncate(name, 40)) for name in found[:_MAX_SHOWN])
    more = f" and {len(found) - _MAX_SHOWN} more" if len(found) > _MAX_SHOWN else ""
    effect = "which are unknown tokens of the output" if is_output else "so its output may be wrong"
    return f"the model does not know {names}{more}, {effect}"
