"""Conversations as inputs of generation: messages, formatted by the model's chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zoo.data.chat_template import CHAT, ChatTemplate
from zoo.data.tokenizer import Tokenizer
from zoo.errors import InputError, ZooError, truncate
from zoo.interfaces import Model


def is_conversation(value: Any) -> bool:
    """Return whether an input is a list of messages."""
    return isinstance(value, Sequence) and len(value) > 0 and isinstance(value[0], Mapping)


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
