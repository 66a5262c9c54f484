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
from zoo.errors import MissingExtra, ZooError, truncate
from zoo.interfaces import Model, TensorSchema

if TYPE_CHECKING:
    from zoo.data.chat_template import ChatTemplate


import base64

MAX_GROWTH = 100_000
"""Characters that a character of a text may become."""
MAX_ADDED = 1_000
MAX_COPIES = 10
"""Tokens that a post-processor may add, and how often it may repeat a text."""
MAX_SMALL = 2**20
MAX_RATIO = 8
"""Texts of more characters than `MAX_SMALL` become at most this many times longer."""
MAX_TOKEN = 256
"""Characters of decoded text per token, if they are more than `MAX_SMALL`."""
_CHARACTERS = {"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "BertNormalizer": 12, "StripAccents": 1}
"""Characters that a part makes of one Unicode character at most; 4 for other parts."""


class Growth:
    """The growth of texts in a tokenizer.

    Args:
        backend: the tokenizer of the library.
        label: its name in error messages.

    Raises:
        ZooError: if a text could grow beyond the limits.
    """

    def __init__(self, backend: Any, label: str) -> None:
        self.encoding = _growth(_settings(backend.normalizer))
        self.decoding = _growth(_settings(backend.decoder))
        copies, added = _template(_settings(backend.post_processor))
        if max(self.encoding, self.decoding) > MAX_GROWTH:
            longest = max(self.encoding, self.decoding)
            raise ZooError(
                f"{label} can replace one character by {longest:,}; at most {MAX_GROWTH:,} are "
                "allowed"
            )
        if added > MAX_ADDED or copies > MAX_COPIES:
            raise ZooError(
                f"{label} adds {added:,} tokens to a text and repeats it {copies:,} times; at most "
                f"{MAX_ADDED:,} and {MAX_COPIES} are allowed"
            )

    def check_texts(self, backend: Any, texts: Sequence[str]) -> None:
        """Raise ZooError if the texts become too long when they are encoded."""
        size = sum(map(len, texts))
        limit = max(MAX_SMALL, MAX_RATIO * size)
        if (size + len(texts)) * self.encoding <= limit or backend.normalizer is None:
            return
        length = 0
        for piece in _pieces(texts, max(1, MAX_SMALL // self.encoding)):
            length += len(backend.normalizer.normalize_str(piece))
            if length > limit:
                raise ZooError(
                    f"the tokenizer makes more than {limit:,} characters of texts with {size:,}"
                )

    def check_tokens(self, backend: Any, ids: Sequence[int]) -> None:
        """Raise ZooError if the tokens become too long when they are decoded."""
        limit = max(MAX_SMALL, MAX_TOKEN * len(ids))
        length = sum(len(backend.id_to_token(token) or "") for token in ids) * self.decoding
        if length > limit:
            raise ZooError(
                f"the tokenizer makes up to {length:,} characters of {len(ids):,} tokens; at most "
                f"{limit:,} are allowed"
            )


def _pieces(texts: Sequence[str], size: int) -> Iterator[str]:
    for text in texts:
        for start in range(0, max(len(text), 1), size):
            yield text[start : start + size]


def _settings(part: Any) -> dict[str, Any]:
    """Return the JSON of a part of a tokenizer."""
    found: dict[str, Any] = {} if part is None else json.loads(part.__getstate__())
    return found


def _growth(part: Mapping[str, Any]) -> int:
    """Return the largest number of characters that a normaliser or decoder makes of one."""
    kind = part.get("type")
    if kind == "Sequence":
        growth = 1
        for inner in part.get("normalizers") or part.get("decoders") or ():
            growth *= _growth(inner)
        return growth
    if kind == "Replace":
        content, pattern = len(part.get("content") or ""), part.get("pattern")
        text = pattern.get("String") if isinstance(pattern, dict) else None
        return -(-max(content, 1) // len(text)) if text else 1 + content
    if kind == "Prepend":
        return 1 + len(part.get("prepend") or "")
    if kind == "Precompiled":
        return _precompiled(part.get("precompiled_charsmap") or "")
    return _CHARACTERS.get(kind, 4) if kind else 1


def _precompiled(text: str) -> int:
    """Return the longest replacement in a character map of SentencePiece: its size, a trie, and
    the replacements, each with a zero byte at the end."""
    content = base64.b64decode(text)
    replacements = content[4 + int.from_bytes(content[:4], "little") :]
    return max(len(each) for each in replacements.split(b"\0")) or 1


def _template(part: Mapping[str, Any]) -> tuple[int, int]:
    """Return how often a post-processor repeats a text, and how many tokens it adds."""
    copies, added = 1, 0
    for inner in part.get("processors") or ():
        more, tokens = _template(inner)
        copies, added = copies * more, added * more + tokens
    if part.get("type") == "TemplateProcessing":
        pieces, special = part["single"], part["special_tokens"]
        copies = sum("Sequence" in piece for piece in pieces)
        names = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
        added = sum(len(special[name]["ids"]) for name in names if name in special)
    return copies, added


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
        `zoo.data.chat_template.encode_chat`."""
        from zoo.data.chat_template import ChatTemplate, encode_chat

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
