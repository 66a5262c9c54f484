"""Training of tokenizers on text files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from zoo.data.special_tokens import NAMES, special_ids
from zoo.data.table_texts import read_columns, warn_about_table
from zoo.data.text_lines import TextLines
from zoo.data.tokenizer import Tokenizer
from zoo.data.tokenizer_types import TRAINERS, UNKNOWN, TokenizerType, TrainingRequest
from zoo.errors import DataError, ZooError, suggest
from zoo.files import atomic_write
from zoo.interfaces import Model
from zoo.interfaces.embedding import to_eos_ids

TextUnit = Literal["line", "document"]
DEFAULT_SPECIAL = ("pad", "unk", "bos", "eos")
_SAMPLE = 10_000
"""Number of lines that the summary is computed from."""


@dataclass(frozen=True)
class TokenizerSummary:
    """A trained tokenizer and what it does to the first lines of its files.

    Attributes:
        json: the tokenizer, for the parameter ``tokenizer`` of models and preprocessors.
        size: number of tokens.
        special: IDs of the special tokens.
        coverage: share of tokens that are not unknown.
        tokens_per_line: mean number of tokens.
        example: the first line that is not empty.
    """

    json: str = field(repr=False)
    size: int
    special: Mapping[str, int]
    coverage: float
    tokens_per_line: float
    example: str


def train_tokenizer(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    type: TokenizerType = "bpe",
    vocab: int = 8000,
    special: Sequence[str] = DEFAULT_SPECIAL,
    min_count: int = 1,
    lowercase: bool = False,
    column: int | None = None,
    columns: Sequence[str] = (),
    delimiter: str | None = None,
    unit: TextUnit = "line",
    model: Model | None = None,
    key: str | None = None,
    progress: bool = False,
) -> TokenizerSummary:
    """Train a tokenizer on text files. The same files give the same tokenizer.

    Args:
        files: UTF-8 text files, one text per line unless `unit` is set; ``.gz``, ``.xz`` and
            ``.bz2`` are decompressed.
        output: where to write the tokenizer as JSON.
        type: ``bpe`` (of bytes), ``unigram``, ``wordpiece``, ``words`` (split at white space) or
            ``characters``.
        vocab: maximum number of tokens, including special tokens.
        special: special tokens in the order of their IDs: pad, unk, bos, eos, mask, cls, sep, or
            other tokens such as "<user>".
        min_count: tokens that occur less often are left out.
        lowercase: convert texts to lower case.
        column: the number of a column of each line, from 1; by default the whole line.
        columns: names of the columns of CSV or TSV files with a header, or the keys of JSON-lines
            files, whose texts are used; quoted values are read.
        delimiter: text between the columns; default: a tab, and with ``columns`` a comma for
            ``.csv``.
        unit: what a text is: a line, or the whole file with its line breaks.
        model: a model whose vocabulary size and special token IDs are used instead.
        key: the key of the model's batch that the tokenizer is for; by default all keys with token
            IDs, which must have vocabularies of the same size.
        progress: show the progress of the library on standard error.
    """
    if column is not None and columns:
        raise ZooError("set 'column' or 'columns', not both")
    if unit not in get_args(TextUnit):
        raise ZooError(f"unit is '{unit}'; expected one of {', '.join(get_args(TextUnit))}")
    if unit == "document" and (column is not None or columns):
        raise ZooError("unit is 'document'; columns need unit 'line'")
    if columns and len(delimiter or ",") != 1:
        raise ZooError(f"delimiter is '{delimiter}'; with 'columns' it is one character")
    if delimiter == "":
        raise ZooError("delimiter is empty; expected the text between the columns, such as a tab")
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    for path in () if columns or unit == "document" else paths:
        warn_about_table(TextLines(path), column)

    def texts() -> Iterator[str]:
        for path in paths:
            if unit == "document":
                yield "\n".join(TextLines(path))
            elif columns:
                yield from read_columns(TextLines(path), columns, delimiter)
            else:
                yield from _read_texts(path, column, delimiter or "\t")

    return train_on_texts(
        texts,
        output,
        type=type,
        vocab=vocab,
        special=special,
        min_count=min_count,
        lowercase=lowercase,
        model=model,
        keys=None if key is None else [key],
        progress=progress,
    )


def train_on_texts(
    texts: Callable[[], Iterator[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    type: TokenizerType = "bpe",
    vocab: int = 8000,
    special: Sequence[str] = DEFAULT_SPECIAL,
    min_count: int = 1,
    lowercase: bool = False,
    model: Model | None = None,
    keys: Sequence[str] | None = None,
    progress: bool = False,
) -> TokenizerSummary:
    """Train a tokenizer on texts; see `train_tokenizer`.

    Args:
        texts: returns an iterator of the texts; called several times.
        keys: keys of the model's batch; keys without token IDs are ignored if another one has them.
    """
    if type not in TRAINERS:
        raise ZooError(f"no type of tokenizers named '{type}'{suggest(type, TRAINERS)}")
    if model is not None:
        vocab, tokens = _fit_model(model, keys, special)
    else:
        tokens = [NAMES.get(name, (name,))[0] for name in special]
    if type != "bpe" and UNKNOWN not in tokens:
        tokens.append(UNKNOWN)
    if len(set(tokens)) < len(tokens):
        raise ZooError(f"special tokens occur twice: {', '.join(tokens)}")
    trained = TRAINERS[type](TrainingRequest(texts, vocab, tokens, min_count, lowercase, progress))
    summary = _summarise(trained, texts(), tokens)
    if output is not None:
        with atomic_write(Path(output)) as temporary:
            temporary.write_text(trained, encoding="utf-8")
    return summary


def _read_texts(path: str | os.PathLike[str], column: int | None, delimiter: str) -> Iterator[str]:
    """Yield the lines of a file, or a column of them, numbered from 1."""
    lines = TextLines(path)
    for index, line in enumerate(lines):
        cells = line.split(delimiter)
        if column is not None and len(cells) < column:
            raise DataError(
                f"column {column} is missing; the line has {len(cells)}", lines.origin(index)
            )
        yield line if column is None else cells[column - 1]


def _fit_model(
    model: Model, asked: Sequence[str] | None, special: Sequence[str]
) -> tuple[int, list[str]]:
    """Return the vocabulary size of a model, and special tokens in the order of their IDs."""
    sizes = _vocabulary_sizes(model)
    keys = [name for name in sizes if asked is None or name in asked]
    if not keys:
        names = ", ".join(f"'{name}'" for name in sizes) or "none"
        subject = "the batch" if asked is None else f"'{asked[0]}'"
        raise ZooError(
            f"{subject} of model '{model.name}' does not contain token IDs (keys: {names})"
        )
    vocab = sizes[keys[0]]
    if any(sizes[name] != vocab for name in keys):
        found = " and ".join(f"{sizes[name]:,} for '{name}'" for name in keys)
        raise ZooError(
            f"model '{model.name}' has vocabularies of different sizes: {found}; train one "
            f"tokenizer for each, with the key {' or '.join(map(repr, keys))} (--key {keys[0]})"
        )
    wanted = {
        number: NAMES[role][0] for name in keys for role, number in special_ids(model, name).items()
    }
    others = [NAMES.get(role, (role,))[0] for role in special if role not in ("pad", "bos", "eos")]
    rest = iter([token for token in others if token not in wanted.values()])
    tokens: list[str] = []
    for number in range(max(wanted, default=-1) + 1):
        tokens.append(wanted.get(number) or next(rest, f"<unused{number}>"))
    if len(tokens) >= vocab:
        raise ZooError(_describe_last(model, len(tokens) - 1))
    return vocab, [*tokens, *rest]


def _describe_last(model: Model, number: int) -> str:
    """Return the message about a special token with the last ID of a vocabulary."""
    ends = {"bos": [model.bos], "eos": to_eos_ids(model.eos)}
    keys = [key for key, ids in ends.items() if number in ids]
    change = ", ".join(f"{key}: 0" for key in keys) if keys else "padding: 0"
    return (
        f"model '{model.name}' has the special token ID {number}, the last one of its vocabulary, "
        "but a trained tokenizer has its special tokens first; set another ID in the spec, such as "
        f"'model: {{{change}}}', or use the tokenizer of the model whose weights you take"
    )


def _vocabulary_sizes(model: Model) -> dict[str, int]:
    """Return the vocabulary sizes of the keys with token IDs; one ID per item is a class."""
    return {
        key: schema.below
        for key, schema in (model.batch_schema() or {}).items()
        if isinstance(schema.below, int) and schema.dims and len(schema.dims) > 1
    }


def _summarise(trained: str, texts: Iterator[str], special: Sequence[str]) -> TokenizerSummary:
    tokenizer = Tokenizer(trained)
    lines = list(islice((text for text in texts if text.strip()), _SAMPLE))
    if not lines:
        raise DataError("the files have no text")
    rows = tokenizer.encode(lines)
    count = sum(map(len, rows))
    unknown = tokenizer.backend.token_to_id(UNKNOWN)
    return TokenizerSummary(
        json=trained,
        size=tokenizer.vocab_size,
        special={token: tokenizer.backend.token_to_id(token) for token in special},
        coverage=1 - sum(row.count(unknown) for row in rows) / max(count, 1),
        tokens_per_line=count / len(lines),
        example=next(line for line in lines[0].split("\n") if line.strip()),
    )
