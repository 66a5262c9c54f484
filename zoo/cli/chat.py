"""The conversations of ``zoo generate --chat``: in a terminal, or given as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zoo.interfaces import Model

EXIT = "/exit"


def parse_conversation(text: str, number: int) -> list[Mapping[str, Any]]:
    """Return the messages of an input: a JSON list, or the text of one message of the user."""
    from zoo.errors import InputError
    from zoo.generation.text_inputs import check_messages

    if not text.lstrip().startswith("["):
        return [{"role": "user", "content": text}]
    try:
        messages: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not valid JSON: {error}", number) from None
    check_messages(messages, number)
    return list(messages)


def converse(model: Model, options: Mapping[str, Any]) -> None:
    """Answer the messages of standard input, one per line, until its end, Ctrl-C or ``/exit``."""
    from zoo.generation.pipeline import stream
    from zoo.generation.text_inputs import require_chat

    require_chat(model)
    messages: list[Mapping[str, Any]] = []
    if sys.stdin.isatty():
        print(f"Type a message; {EXIT} or Ctrl-D ends the conversation.", file=sys.stderr)
    while True:
        try:
            text = _read_message()
            if text is None:
                return
            if not text:
                continue
            messages.append({"role": "user", "content": text})
            answer = ""
            for piece in stream(model, messages, **options):
                answer += piece
                print(piece, end="", flush=True)
            print()
        except KeyboardInterrupt:
            print()
            return
        messages.append({"role": "assistant", "content": answer})


def _read_message() -> str | None:
    """Return the next message; None at the end."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        print("> ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line and is_terminal:
        print(file=sys.stderr)
    text = line.strip()
    return None if not line or text == EXIT else text
