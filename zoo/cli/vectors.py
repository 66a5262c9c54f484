"""``zoo vectors``: questions to word vectors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import JsonOption, print_json, print_table, table
from zoo.errors import ZooError

if TYPE_CHECKING:
    from zoo.vectors import Vectors

EXAMPLE = "zoo vectors glove.6B.100d.txt man king woman"


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A word2vec (text or binary), GloVe or fastText file; or a model with words, "
            "by any name.",
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD",
            help="One: its nearest. Two: how alike. Three, A B C: what is to C as B is to A.",
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many words to name.")] = 10,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the vectors to this file.")
    ] = None,
    file_format: Annotated[
        str, typer.Option("--format", help="Of that file: word2vec, word2vec-binary or glove.")
    ] = "word2vec",
    as_json: JsonOption = False,
) -> None:
    """Ask word vectors for neighbours, likeness and analogies, or write them in another format."""
    vectors = _load_vectors(source)
    if output is not None:
        vectors.write(output, file_format)  # type: ignore[arg-type]
    answer = _query(vectors, words or [], count)
    if as_json:
        print_json(answer)
    elif "nearest" in answer:
        _print(answer["nearest"])  # type: ignore[arg-type]
    elif "similarity" in answer:
        print(f"{answer['similarity']:.4f}")
    else:
        print(f"{len(vectors):,} words of width {vectors.dim}")


def _load_vectors(source: str) -> Vectors:
    from zoo.vectors import Vectors, vectors_from_model

    if os.path.isfile(source) and not source.endswith(".safetensors"):
        return Vectors.read(source)
    from zoo.hub.models import load

    return vectors_from_model(load(source))


def _query(vectors: Vectors, words: list[str], count: int) -> dict[str, object]:
    if len(words) > 3:
        raise ZooError(f"{len(words)} words are too many; give one, two or three")
    if not words:
        return {"words": len(vectors), "dim": vectors.dim}
    if len(words) == 2:
        return {"similarity": vectors.similarity(*words)}
    if len(words) == 1:
        near = vectors.most_similar(words[0], count)
    else:
        near = vectors.analogy(words[0], words[1], words[2], count)
    return {"nearest": [{"word": word, "similarity": cosine} for word, cosine in near]}


def _print(nearest: list[dict[str, object]]) -> None:
    from rich.text import Text

    rows = table("word", "similarity", no_wrap=("word",), right=("similarity",))
    for row in nearest:
        rows.add_row(Text(str(row["word"])), f"{row['similarity']:.4f}")
    print_table(rows)
