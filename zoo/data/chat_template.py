"""Chat templates: the text of a conversation, in the template language of Hugging Face tokenizers.

Templates come from repositories, so they are rendered in processes with limits of time and memory,
in the sandbox of `zoo.data.template_sandbox`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from zoo.data.limited_process import MAX_SECONDS, LimitedFunction
from zoo.errors import ZooError

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
