"""Chat templates: the text of a conversation, in the template language of Hugging Face tokenizers.

Templates come from repositories, so they run in jinja2's sandbox and within bounds: the size of the
template, the work of a rendering (iterations, calls and characters), and a list of filters and of
methods of strings. Nothing else of Python is reachable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from zoo.errors import ZooError, one_line, truncate

CHAT = "chat"
"""The key of a chat template among the tokenizers of a model."""
MAX_TEMPLATE = 200_000
"""Maximum number of characters of a template."""


class ChatTemplate:
    """Formats the messages of a conversation as text.

    Args:
        template: the template, as in ``tokenizer_config.json`` or ``chat_template.jinja``.
        tokens: the special tokens that the template refers to, such as ``bos_token``.
    """

    def __init__(self, template: str, tokens: Mapping[str, str] | None = None) -> None:
        if len(template) > MAX_TEMPLATE:
            raise ZooError(
                f"the chat template has {len(template):,} characters; at most {MAX_TEMPLATE:,} are "
                "allowed"
            )
        self.template, self.tokens = template, dict(tokens or {})

    def __reduce__(self) -> tuple[type[ChatTemplate], tuple[str, dict[str, str]]]:
        return ChatTemplate, (self.template, self.tokens)  # without the compiled template

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
        from jinja2 import TemplateError

        variables = {
            "messages": json.loads(json.dumps(list(messages))),
            "tools": None,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            **self.tokens,
        }
        try:
            return str(self._compiled.render(variables))
        except (
            *(TemplateError, TypeError, ValueError, LookupError, AttributeError),
            *(ArithmeticError, RecursionError),
        ) as error:
            raise ZooError(
                f"the chat template cannot format the messages: {_describe(error)}"
            ) from None

    @cached_property
    def _compiled(self) -> Any:
        from jinja2 import TemplateError

        from zoo.data.template_sandbox import BoundedTemplate

        try:
            return BoundedTemplate(self.template)
        except (TemplateError, SyntaxError, RecursionError, ValueError) as error:
            raise ZooError(f"the chat template is not valid: {_describe(error)}") from None


def _describe(error: Exception) -> str:
    return one_line(truncate(str(error) or type(error).__name__, 300))
