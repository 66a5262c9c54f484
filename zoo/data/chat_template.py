"""Chat templates: the text of a conversation, in the template language of Hugging Face tokenizers.

Templates come from repositories, so they are rendered in processes with limits of time and memory,
in the sandbox of `zoo.data.template_sandbox`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zoo.data.limited_process import MAX_SECONDS, LimitedFunction
from zoo.data.special_tokens import remove_special_tokens
from zoo.errors import DataError, ZooError, truncate
from zoo.interfaces import TensorSchema

if TYPE_CHECKING:
    from zoo.data.tokenizer import Tokenizer


CHAT = "chat"
"""The key of a chat template among the tokenizers of a model."""
MAX_TEMPLATE = 200_000
"""Maximum number of characters of a template."""


class ChatTemplate:
    """Formats the messages of a conversation as text.

    Args:
        template: the template, as in ``tokenizer_config.json`` or ``chat_template.jinja``.
        tokens: the special tokens that the template refers to, such as ``bos_token``.
        max_seconds: limit of time to format a short conversation; long ones have more.
    """

    def __init__(
        self,
        template: str,
        tokens: Mapping[str, str] | None = None,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        if len(template) > MAX_TEMPLATE:
            raise ZooError(
                f"the chat template has {len(template):,} characters; at most {MAX_TEMPLATE:,} are "
                "allowed"
            )
        self.template, self.tokens = template, dict(tokens or {})
        self._render = LimitedFunction(
            "zoo.data.template_sandbox:Renderer",
            ("jinja2", "markupsafe"),
            max_seconds=max_seconds,
        )

    def __reduce__(self) -> tuple[type[ChatTemplate], tuple[str, dict[str, str], float]]:
        return ChatTemplate, (self.template, self.tokens, self._render.max_seconds)

    @classmethod
    def from_json(cls, text: str) -> ChatTemplate:
        """Return the template that a model contains."""
        try:
            content = json.loads(text)
            return cls(str(content["template"]), dict(content["tokens"]))
        except (ValueError, LookupError, TypeError):
            raise ZooError("the chat template of the model is not valid") from None

    def to_json(self) -> str:
        return json.dumps({"template": self.template, "tokens": self.tokens})

    def render(
        self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = False
    ) -> str:
        """Return the text of a conversation, with its special tokens.

        Args:
            messages: mappings with ``role`` and ``content``.
            add_generation_prompt: whether the text ends with the start of the assistant's answer.
        """
        variables = {
            "messages": list(messages),
            "tools": None,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            **self.tokens,
        }
        try:
            return str(self._render({"template": self.template, "variables": variables}))
        except ZooError as error:
            raise ZooError(f"the chat template {error}") from None


ASSISTANT = "assistant"


def encode_chat(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    messages: Sequence[Mapping[str, Any]],
    field: TensorSchema,
    *,
    open_answer: bool = False,
) -> tuple[list[int], list[bool]]:
    """Return the token IDs of messages, and whether each token is part of an answer.

    An answer is what the template adds for a message of the assistant after the text that ends
    where it begins (``add_generation_prompt``), so it includes the end of the turn. Start and end
    tokens of the schema are removed from the IDs, as they are added when a batch is made; the
    second list has values for them.

    Args:
        open_answer: whether the text ends where an answer begins, for generation; no token is then
            part of an answer.

    Raises:
        DataError: if a message contains a special token of the tokenizer, or the text of a part of
            the messages is not the start of the text of all of them.
    """
    _forbid_special_tokens(tokenizer, messages)
    render = template.render
    text = render(messages, add_generation_prompt=open_answer)
    spans = []
    for number, message in enumerate(() if open_answer else messages):
        if message.get("role") == ASSISTANT:
            before = render(messages[:number], add_generation_prompt=True)
            after = render(messages[: number + 1])
            if not (text.startswith(after) and after.startswith(before)):
                raise DataError(
                    f"the chat template changes earlier turns, so answer {number + 1} cannot be "
                    "found in its text"
                )
            spans.append((len(before), len(after)))
    ids, inside = tokenizer.encode_spans(text, spans)
    return _with_special_tokens(ids, inside, field)


def _with_special_tokens(
    ids: list[int], inside: list[bool], field: TensorSchema
) -> tuple[list[int], list[bool]]:
    """Remove the special tokens of the schema; the values of those that are added follow their
    neighbours: the start is not part of an answer, the end is if the last token is."""
    prefix, suffix = len(field.prefix), len(field.suffix)
    plain = remove_special_tokens(ids, field)
    has_prefix = bool(prefix) and tuple(ids[:prefix]) == field.prefix
    start = prefix if has_prefix else 0
    kept = inside[start : start + len(plain)]
    return plain, [False] * prefix + kept + [bool(kept) and kept[-1]] * suffix


def _forbid_special_tokens(tokenizer: Tokenizer, messages: Sequence[Mapping[str, Any]]) -> None:
    for message in messages:
        content = str(message.get("content", ""))
        for token in tokenizer.special_ids().values():
            if token in content:
                shown = truncate(repr(content), 80)
                raise DataError(f"the message {shown} contains the special token '{token}'")
