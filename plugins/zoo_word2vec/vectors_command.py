"""``zoo vectors``: query word vectors, or convert them to another format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

import zoo
from zoo import ZooError
from zoo.command import JsonOption, print_json, print_rows
from zoo_word2vec.vectors import Vectors, vectors_from_model


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A word2vec (text or binary), GloVe or fastText file, or a model with a "
            "tokenizer: a file, a name in the catalogue, or ORG/NAME.",
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD",
            help="One word: its nearest neighbours. Two: their similarity. Three, A B C: the "
            "words that relate to C as B relates to A.",
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Number of words to print.")] = 10,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the vectors to this file.")
    ] = None,
    file_format: Annotated[
        str,
        typer.Option("--format", help="Format of that file: word2vec, word2vec-binary or glove."),
    ] = "word2vec",
    as_json: JsonOption = False,
) -> None:
    """Query word vectors for neighbours, similarities and analogies, or convert them."""
    vectors = _load_vectors(source)
    if output is not None:
        vectors.write(output, file_format)  # type: ignore[arg-type]
    result = _query(vectors, words or [], count)
    if as_json:
        print_json(result)
    elif "nearest" in result:
        rows = ((row["word"], f"{row['similarity']:.4f}") for row in result["nearest"])
        print_rows(("word", "similarity"), rows, no_wrap=("word",), right=("similarity",))
    elif "similarity" in result:
        print(f"{result['similarity']:.4f}")
    else:
        print(f"{len(vectors):,} words, vectors of size {vectors.dim}")


def _load_vectors(source: str) -> Vectors:
    if os.path.isfile(source) and not source.endswith(".safetensors"):
        return Vectors.read(source)
    suffix = os.path.splitext(source)[1]
    if not os.path.exists(source) and suffix in (".txt", ".vec", ".bin", ".gz"):
        raise ZooError(f"{source}: no such file; expected a file of word vectors, or a model")
    model = zoo.load(source)
    try:
        return vectors_from_model(model)
    except ZooError as error:
        raise ZooError(f"{source} has no word vectors: {error}") from None


def _query(vectors: Vectors, words: list[str], count: int) -> dict[str, Any]:
    if len(words) > 3:
        raise ZooError(f"got {len(words)} words; expected at most three")
    if not words:
        return {"words": len(vectors), "dim": vectors.dim}
    if len(words) == 2:
        return {"similarity": vectors.similarity(*words)}
    if len(words) == 1:
        nearest = vectors.most_similar(words[0], count)
    else:
        nearest = vectors.analogy(words[0], words[1], words[2], count)
    return {"nearest": [{"word": word, "similarity": cosine} for word, cosine in nearest]}
