"""``zoo tokenizer``: train a tokenizer, show what it does, or take it out of a model."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.cli.completion import complete_spec
from zoo.cli.output import JsonOption, ModelArgument, print_json
from zoo.cli.verbosity import shows_progress
from zoo.cli.wrapping import CONTEXT_SETTINGS, SuggestingCommand, SuggestingGroup, wrap_command

if TYPE_CHECKING:
    from zoo.interfaces import Model
    from zoo.spec.spec import Spec

EXAMPLE = "zoo tokenizer train train.en train.de -o tokenizer.json --vocab 8000"
EXTRACT_EXAMPLE = "zoo tokenizer extract run -o tokenizer.json"
SHOW_EXAMPLE = "zoo tokenizer show en.json 'A man sleeps .'"

group = typer.Typer(
    cls=SuggestingGroup,
    help="Train a tokenizer on text files, show what one does, or take one out of a model.",
    no_args_is_help=True,
    epilog=f"Example: {EXAMPLE}",
    context_settings=CONTEXT_SETTINGS,
)


def train(
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file, a tokenizer.json.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="UTF-8 text files, one text per line; .gz, .xz and .bz2 are read. Without files, "
            "the training data of --for.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option("--type", help="bpe (of bytes), unigram, wordpiece, words or characters.")
    ] = "bpe",
    vocab: Annotated[int, typer.Option(min=1, help="Maximum number of tokens.")] = 8000,
    special: Annotated[
        str, typer.Option(help="Special tokens in the order of their IDs, separated by commas.")
    ] = "pad,unk,bos,eos",
    min_count: Annotated[
        int, typer.Option(min=1, help="Leave out tokens that occur less often.")
    ] = 1,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Convert texts to lower case.")
    ] = False,
    column: Annotated[
        int | None, typer.Option(min=1, help="Column of each line, from 1; see --delimiter.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="Columns of .csv and .tsv files with a header, or keys of .jsonl files, separated "
            "by commas; a name with a comma is in double quotes.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="Text between columns.", show_default="a tab; with --columns a comma for .csv"
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="What a text of the files is: line, or document, with its line breaks.",
            show_default="line; with --for that of the data",
        ),
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="SPEC",
            help="A spec; vocabulary size and special token IDs are those of its model.",
            autocompletion=complete_spec,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="With --for: a key of the model's batch, for example target. Default: all keys "
            "with token IDs."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a tokenizer on text files, or on the training data of a spec. The same texts give the
    same tokenizer."""
    from zoo.data.tokenizer import Tokenizer
    from zoo.data.tokenizer_training import train_on_texts, train_tokenizer
    from zoo.data.training_texts import spec_texts, spec_unit
    from zoo.errors import ZooError
    from zoo.spec.spec import load_spec

    read = None if spec is None else load_spec(spec)
    options: dict[str, Any] = {
        "type": kind,
        "vocab": vocab,
        "special": [name.strip() for name in special.split(",") if name.strip()],
        "min_count": min_count,
        "lowercase": lowercase,
        "model": None if read is None else _meta_model(read),
        "progress": shows_progress(),
    }
    if files:
        table: dict[str, Any] = {"column": column, "delimiter": delimiter}
        table |= {"columns": _split_names(columns or "")}
        known = "line" if read is None or column or columns else spec_unit(read)
        unit = unit or ("line" if known in (None, "line") else "document")
        table["unit"] = unit
        summary = train_tokenizer(files, output, key=key, **table, **options)
    else:
        given = {"column": column, "columns": columns, "delimiter": delimiter, "unit": unit}
        if read is None:
            raise ZooError("expected text files, or --for SPEC, whose training data is read")
        if used := [f"--{name}" for name, value in given.items() if value is not None]:
            raise ZooError(f"{used[0]} is for text files; the texts are those of --for {spec}")
        keys = None if key is None else [key]
        summary = train_on_texts(spec_texts(read, key), output, keys=keys, **options)
    tokenizer, text = Tokenizer(summary.json), "line" if files and unit == "line" else "text"
    if as_json:
        found = {"coverage": summary.coverage, "tokens_per_line": summary.tokens_per_line}
        print_json({**_describe(output, tokenizer), **found})
        return
    _print_summary(output, tokenizer)
    print(
        f"coverage {summary.coverage:.2%}, {summary.tokens_per_line:.1f} tokens per {text} "
        f"(of the first 10,000 {text}s)"
    )
    _print_encoding(tokenizer, summary.example)


def show(
    file: Annotated[Path, typer.Argument(help="A tokenizer.json.")],
    text: Annotated[str | None, typer.Argument(help="A text to encode and decode.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the size and special tokens of a tokenizer; encode and decode a text."""
    from zoo.data.tokenizer import Tokenizer, read_tokenizer

    tokenizer = Tokenizer(read_tokenizer(file), str(file))
    if as_json:
        encoding = {} if text is None else {"text": text, **_encode(tokenizer, text)}
        print_json({**_describe(file, tokenizer), **encoding})
        return
    _print_summary(file, tokenizer)
    if text is not None:
        _print_encoding(tokenizer, text)


def extract(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file, a tokenizer.json.")],
    key: Annotated[
        str | None,
        typer.Option(
            help="The key of the model's batch, for example target; needed if the tokenizers of "
            "the keys differ."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the tokenizer that is stored in a model to a file."""
    from zoo.data.tokenizer import Tokenizer
    from zoo.errors import ZooError, suggest
    from zoo.files import atomic_write
    from zoo.hub.models import read_header

    stored = read_header(model).tokenizer
    if not stored:
        raise ZooError(f"{model} contains no tokenizer")
    if key is not None and key not in stored:
        raise ZooError(f"{model} has no tokenizer of '{key}'{suggest(key, stored)}")
    found = set(stored.values()) if key is None else {stored[key]}
    if len(found) > 1:
        names = " or ".join(f"--key {name}" for name in sorted(stored))
        raise ZooError(f"{model} has several tokenizers; choose one with {names}")
    (text,) = found
    with atomic_write(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
    tokenizer = Tokenizer(text, str(model))
    if as_json:
        print_json(_describe(output, tokenizer))
    else:
        _print_summary(output, tokenizer)


def _describe(file: Path, tokenizer: Any) -> dict[str, Any]:
    special = {token: number for number, token in tokenizer.special_ids().items()}
    return {"file": str(file), "size": tokenizer.vocab_size, "special": special}


def _encode(tokenizer: Any, text: str) -> dict[str, Any]:
    (ids,) = tokenizer.encode([text])
    tokens = [tokenizer.backend.id_to_token(number) for number in ids]
    return {"tokens": tokens, "ids": list(ids), "decoded": tokenizer.decode(ids)}


def _print_summary(file: Path, tokenizer: Any) -> None:
    found = _describe(file, tokenizer)
    special = ", ".join(f"{token} {number}" for token, number in found["special"].items())
    print(f"{file}: {found['size']:,} tokens ({special or 'no special tokens'})")


def _print_encoding(tokenizer: Any, text: str) -> None:
    found = _encode(tokenizer, text)
    print(f"text    {text}")
    print(f"tokens  {' '.join(found['tokens'])}")
    print(f"IDs     {' '.join(map(str, found['ids']))}")
    print(f"decoded {found['decoded']}")


def _split_names(text: str) -> list[str]:
    """Return names that are separated by commas; a name in double quotes may contain commas."""
    names = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in names if name.strip()]


def _meta_model(spec: Spec) -> Model:
    """Return the model of a spec on the meta device, without weights."""
    from zoo.spec.composition import build_on_meta

    model: Model = build_on_meta(spec).part
    return model


for name, function, example in (
    ("train", train, EXAMPLE),
    ("show", show, SHOW_EXAMPLE),
    ("extract", extract, EXTRACT_EXAMPLE),
):
    register = group.command(name, cls=SuggestingCommand, epilog=f"Example: {example}")
    register(wrap_command(function))
