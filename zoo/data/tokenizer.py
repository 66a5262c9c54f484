"""Tokenizers stored in a model."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zoo.data.chat_template import CHAT
from zoo.data.special_tokens import check_special_tokens, remove_special_tokens
from zoo.data.text_start import TextStart
from zoo.data.tokenizer_growth import Growth
from zoo.errors import MissingExtra, ZooError, truncate
from zoo.interfaces import Model, TensorSchema

if TYPE_CHECKING:
    from zoo.data.chat_template import ChatTemplate

MAX_BYTES = 50_000_000


class Tokenizer:
    """A tokenizer of the `tokenizers` library, read from its JSON.

    Args:
        text: the JSON.
        label: the name of the JSON in error messages.
        literal: whether special tokens in a text, such as "</s>", are encoded as ordinary text.
    """

    def __init__(self, text: str, label: str = "tokenizer", *, literal: bool = False) -> None:
        try:
            from tokenizers import Tokenizer as Backend
        except ImportError:
            raise MissingExtra("tokenization", library="tokenizers", extra="text") from None
        with _report_errors(f"{label} is not valid JSON of the tokenizers library"):
            self.backend: Any = Backend.from_str(text)
            self.backend.no_padding()
            self.backend.no_truncation()
            self.backend.encode_special_tokens = literal
        self._growth = Growth(self.backend, label)
        self._chat_template: ChatTemplate | None = None

    @staticmethod
    def read_json(path: str | os.PathLike[str]) -> str:
        """Return the JSON of a tokenizer file, or raise ZooError if it is not valid."""
        return read_tokenizer(path)

    @property
    def vocab_size(self) -> int:
        """Number of tokens, including added tokens."""
        return int(self.backend.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token IDs of each text, without padding or truncation."""
        self._growth.check_texts(self.backend, texts)
        with _report_errors("the tokenizer cannot encode the text"):
            return [list(encoding.ids) for encoding in self.backend.encode_batch(list(texts))]

    def encode_formatted(self, text: str) -> list[int]:
        """Return the token IDs of a text that contains its special tokens, such as a chat."""
        self._growth.check_texts(self.backend, [text])
        with _report_errors("the tokenizer cannot encode the text"):
            return list(self.backend.encode(text, add_special_tokens=False).ids)

    def encode_plain(self, texts: Sequence[str], field: TensorSchema) -> list[list[int]]:
        """Return the token IDs without the start and end tokens of a schema, which are added when
        a batch is made. The tokenizer's post-processor may have added them."""
        return [remove_special_tokens(ids, field) for ids in self.encode(texts)]

    @cached_property
    def added_ids(self) -> frozenset[int]:
        """The tokens that the post-processor adds to every text, such as "[CLS]" and "[SEP]"."""
        encoding = self.backend.encode("")
        pairs = zip(encoding.ids, encoding.special_tokens_mask, strict=True)
        return frozenset(token for token, added in pairs if added)

    def start_of(self, text: str, count: int) -> str:
        """Return a start of a text with more than `count` tokens, the first ones of the text, or
        the text; see `zoo.data.text_start`."""
        return self._start.of(text, count)

    @cached_property
    def _start(self) -> TextStart:
        return TextStart(self.backend)

    @property
    def added_tokens(self) -> list[str]:
        """The texts of `added_ids`."""
        return [self.backend.id_to_token(token) for token in sorted(self.added_ids)]

    def shorten(self, ids: list[int], max_length: int) -> list[int]:
        """Return token IDs cut to a length; tokens that the post-processor adds at the end stay."""
        end = len(ids)
        while end > 0 and ids[end - 1] in self.added_ids:
            end -= 1
        added = ids[end:]
        return (ids[: max(max_length - len(added), 0)] + added)[:max_length]

    def encode_prompt(self, text: str) -> list[int]:
        """Return the token IDs of a text, without those that the post-processor adds."""
        self._growth.check_texts(self.backend, [text])
        with _report_errors("the tokenizer cannot encode the text"):
            return list(self.backend.encode(text, add_special_tokens=False).ids)

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        """Return the token IDs and segments, 0 or 1, of texts that the post-processor joins."""
        self._growth.check_texts(self.backend, [text for pair in pairs for text in pair])
        with _report_errors("the tokenizer cannot encode the texts"):
            found = self.backend.encode_batch(list(pairs))
            return [(list(each.ids), list(each.type_ids)) for each in found]

    def encode_words(self, words: Sequence[str]) -> tuple[list[int], list[tuple[int, int] | None]]:
        """Return the token IDs of the words of a text, and the positions of the first and the last
        token of each word; None for a word without tokens."""
        self._growth.check_texts(self.backend, words)
        with _report_errors("the tokenizer cannot encode the words"):
            encoding = self.backend.encode(list(words), is_pretokenized=True)
        spans: list[tuple[int, int] | None] = [None] * len(words)
        for position, word in enumerate(encoding.word_ids):
            if word is not None:
                known = spans[word]
                spans[word] = (position if known is None else known[0], position)
        return list(encoding.ids), spans

    def encode_spans(
        self, text: str, spans: Sequence[tuple[int, int]]
    ) -> tuple[list[int], list[bool]]:
        """Return the token IDs of a text without the tokens that the post-processor adds, and
        whether each token has characters of one of the spans."""
        self._growth.check_texts(self.backend, [text])
        with _report_errors("the tokenizer cannot encode the text"):
            encoding = self.backend.encode(text, add_special_tokens=False)
        inside = [any(x < b and a < y for a, b in spans) for x, y in encoding.offsets]
        return list(encoding.ids), inside

    def encode_chat(
        self,
        template: str,
        messages: Sequence[Mapping[str, Any]],
        field: TensorSchema,
        *,
        open_answer: bool = False,
    ) -> tuple[list[int], list[bool]]:
        """Return the token IDs of messages, and whether each token is part of an answer; see
        `zoo.data.chat_tokens.encode_chat`."""
        from zoo.data.chat_template import ChatTemplate
        from zoo.data.chat_tokens import encode_chat

        special = {"bos_token": field.prefix, "eos_token": field.suffix}
        tokens = {
            name: (self.backend.id_to_token(ids[0]) or "") if ids else ""
            for name, ids in special.items()
        }
        known = self._chat_template
        if known is None or (known.template, known.tokens) != (template, tokens):
            known = self._chat_template = ChatTemplate(template, tokens)
        return encode_chat(self, known, messages, field, open_answer=open_answer)

    def unknown(self, texts: Iterable[str]) -> list[str]:
        """Return the distinct parts of texts that are encoded as the unknown token.

        For a tokenizer without unknown token: the characters that it drops.
        """
        found: dict[str, None] = {}
        for text in texts:
            if self.unknown_id is None:
                with _report_errors("the tokenizer cannot encode the text"):
                    dropped = [c for c in text if not self.backend.encode(c).ids]
                found.update(dict.fromkeys(c for c in dropped if not c.isspace()))
            else:
                found.update(dict.fromkeys(self.count_unknown(text)))
        return list(found)

    def count_unknown(self, text: str) -> Counter[str]:
        """Return the parts of a text that are encoded as the unknown token, with their numbers."""
        with _report_errors("the tokenizer cannot encode the text"):
            encoding = self.backend.encode(text, add_special_tokens=False)
        pairs = zip(encoding.ids, encoding.offsets, strict=True)
        parts = (text[slice(*span)] for i, span in pairs if i == self.unknown_id)
        return Counter(part for part in parts if part)

    @cached_property
    def unknown_id(self) -> int | None:
        """The ID of the unknown token, if the tokenizer has one."""
        model = json.loads(self.backend.to_str())["model"]
        if model.get("unk_id") is not None:  # of Unigram models
            return int(model["unk_id"])
        token = model.get("unk_token")
        return None if token is None else self.backend.token_to_id(token)

    def special_ids(self) -> dict[int, str]:
        """Return the special tokens by ID."""
        added = self.backend.get_added_tokens_decoder()
        return {int(i): str(token.content) for i, token in added.items() if token.special}

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text, without special tokens."""
        self._growth.check_tokens(self.backend, ids)
        with _report_errors("the tokenizer cannot decode the tokens"):
            return str(self.backend.decode(list(ids)))


@contextmanager
def _report_errors(message: str) -> Iterator[None]:
    """Raise ZooError for any exception of the library, and for a panic of its Rust code."""
    try:
        yield
    except BaseException as error:
        # A panic is a BaseException of a class that cannot be imported.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ZooError(f"{message}: {truncate(reason, 300)}") from None


def read_tokenizer(path: str | os.PathLike[str]) -> str:
    """Return the JSON of a tokenizer file, or raise ZooError if it is not valid."""
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            kind = "a directory" if file.is_dir() else "not a regular file"
            raise ZooError(f"{path} is {kind}; expected the JSON file of a tokenizer")
        if file.stat().st_size > MAX_BYTES:
            raise ZooError(f"{path} is larger than the limit of {MAX_BYTES:,} bytes for tokenizers")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ZooError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise ZooError(f"{path} is not a valid tokenizer: it is not UTF-8 text") from None
    Tokenizer(text, label=str(path))
    return text


def attach_tokenizers(
    model: Model, tokenizers: Mapping[str, str], *, trained: bool = False
) -> None:
    """Store tokenizers in a model, by key of its batch.

    Args:
        trained: whether the weights were trained with the tokenizers, so that their special tokens
            are not checked.

    Raises:
        ZooError: if a tokenizer has more tokens than the model's vocabulary, or other IDs of
            special tokens.
    """
    for key, text in tokenizers.items():
        tokenizer = Tokenizer(text)
        vocab_size, size = _vocab_size(model, key), tokenizer.vocab_size
        if size > vocab_size:
            raise ZooError(
                f"the {key} tokenizer has {size:,} tokens, but the model's {key} vocabulary has "
                f"{vocab_size:,}; use a tokenizer with the same vocabulary, or "
                "set vocab in the spec"
            )
        if not trained:
            check_special_tokens(tokenizer, model, key)
    chat = {key: text for key, text in (model.tokenizer or {}).items() if key == CHAT}
    model.tokenizer = {**tokenizers, **chat}


def _vocab_size(model: Model, key: str) -> int:
    try:
        return model.vocab_size(key)
    except ZooError:  # the model has other embeddings
        schema = (model.batch_schema() or {}).get(key)
        if schema is None or not isinstance(schema.below, int):
            raise
        return schema.below
