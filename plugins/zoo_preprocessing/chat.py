"""Preprocessor 'chat': the messages of a conversation as token IDs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from zoo import DataError
from zoo.plugin import (
    Array,
    FromParent,
    Preprocessor,
    TensorSchema,
    Tokenizer,
    expand_path,
    truncate as shorten,
)
from zoo_preprocessing.text import token_schema
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER, EXAMPLE_WORDS, TextEncoder

MASK = "mask"
PLAIN = (
    "{% for message in messages %}{{ message.role }}:\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:\n{% endif %}"
)


class Chat(Preprocessor):
    r"""Token IDs of a conversation by a chat template, and the tokens that the loss is computed of.

    .. math:: m_t = \mathbb{1}[x_t \text{ is part of an answer}]

    The template is a Jinja template as `apply_chat_template` of transformers takes it. It runs in a
    sandbox with limits, and is saved with the model. An answer is what it adds for a message of the
    assistant, including the end of the turn.

    Args:
        tokenizer: path of the tokenizer's JSON, as ``zoo tokenizer train`` writes it.
        template: the text of the template; by default a line ``role:``, then the content.
        template_file: path of the template, in place of ``template``; of a ``.json`` file, such as
            tokenizer_config.json, the key ``chat_template`` is used.
        loss: compute the loss of the answers only, or of all tokens.
        max_length: maximum number of tokens of a conversation; longer ones raise DataError.
        schema: schema of the key in the model's batch.
        stored: the tokenizer's JSON in a saved model.

    Shapes:
        messages -> target [T], mask [T] with the start and end tokens of the model.
    """

    name: ClassVar[str] = "chat"
    paper: ClassVar[str] = (
        "Ouyang et al. 2022, Training language models to follow instructions with human feedback, "
        "section 3.5. https://arxiv.org/abs/2203.02155"
    )
    content: ClassVar[Any] = "messages"

    def __init__(
        self,
        *,
        tokenizer: str | None = None,
        template: str | None = None,
        template_file: str | None = None,
        loss: Literal["answers", "all"] = "answers",
        max_length: Annotated[int, Field(ge=1)] | None = None,
        schema: FromParent[TensorSchema],
        stored: FromParent[str | None],
    ) -> None:
        self.given = template
        self.file = template_file
        self.loss = loss
        self.max_length = max_length
        self.schema = schema
        self.path = tokenizer
        self.encoder = TextEncoder(
            tokenizer, stored, schema, max_length=None, truncate=False, lowercase=False
        )

    def outputs(self, key: str) -> Mapping[str, TensorSchema]:
        target = token_schema(self.schema, self.name, ("[B, T]",), (2,))
        return {key: target, MASK: TensorSchema(("B", "T"), "bool", optional=True, pad=False)}

    def fit(self, values: Iterable[Any]) -> dict[str, Any]:
        """Return the text of the template file, so that the model contains it."""
        return {} if self.file is None or self.given is not None else {"template": self.template}

    def stored(self) -> str:
        return self.encoder.stored()

    @cached_property
    def template(self) -> str:
        """The text of the template."""
        if self.given is not None or self.file is None:
            return PLAIN if self.given is None else self.given
        path = expand_path(self.file)
        try:
            text = path.read_text(encoding="utf-8")
            found = json.loads(text)["chat_template"] if path.suffix == ".json" else text
        except (OSError, ValueError, KeyError, TypeError):
            raise DataError(
                "cannot be read; expected a Jinja template, or JSON with 'chat_template'", str(path)
            ) from None
        if not isinstance(found, str):
            raise DataError("'chat_template' is not one template", str(path))
        return found

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        self.encoder.tokenizer  # noqa: B018 -- checks that it fits the model
        return Tokenizer(self.stored(), self.path or "tokenizer")

    def encode(self, value: Any) -> Array:
        """Return the token IDs, and after them the mask of the tokens of the batch."""
        self._check(value)
        ids, answers = self._tokenizer.encode_chat(self.template, value, self.schema)
        if self.max_length is not None and len(ids) > self.max_length:
            raise DataError(
                f"the conversation has {len(ids)} tokens, more than max_length {self.max_length}"
            )
        if self.loss == "all":
            answers = [True] * len(answers)
        elif not any(answers):
            raise DataError("the conversation has no message of the assistant")
        return np.array([*ids, *answers], dtype=np.int64)

    def lengths(self, sizes: Array) -> Array:
        return (sizes - len(self.schema.prefix) - len(self.schema.suffix)) // 2

    def encode_prompts(self, values: Sequence[Any]) -> list[Array]:
        """Return the token IDs of conversations, or of texts of a user, up to the next answer."""
        rows = []
        for value in values:
            messages = [{"role": "user", "content": value}] if isinstance(value, str) else value
            self._check(messages)
            ids, _ = self._tokenizer.encode_chat(
                self.template, messages, self.schema, open_answer=True
            )
            rows.append(np.array(ids, dtype=np.int64))
        return rows

    def _check(self, value: Any) -> None:
        is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
        if not is_list or not all(
            isinstance(each, Mapping) and {"role", "content"} <= set(each) for each in value
        ):
            raise DataError(
                f"expected messages with 'role' and 'content', found {shorten(repr(value), 80)}"
            )

    def transform(self, key: str, array: Array, rng: np.random.Generator) -> Mapping[str, Array]:
        end = int(self.lengths(np.array(array.size)))
        return {key: array[:end], MASK: array[end:].astype(bool)}

    def decode(self, ids: Sequence[int]) -> str:
        return self.encoder.tokenizer.decode(ids)

    def example(self, rng: np.random.Generator) -> list[dict[str, str]]:
        texts = [" ".join(rng.choice(EXAMPLE_WORDS, rng.integers(1, 6))) for _ in range(2)]
        roles = ("user", "assistant")
        return [{"role": r, "content": text} for r, text in zip(roles, texts, strict=True)]

    @classmethod
    def example_schema(cls) -> TensorSchema:
        return TensorSchema(("B", "T"), "integer", below=9)

    @classmethod
    def example_stored(cls) -> str:
        return EXAMPLE_TOKENIZER
