"""Matrices of embeddings and output layers, for decoding steps in kernels."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from zoo.plugin import Embedding
from zoo_fast.by_class import ByClass
from zoo_tokens.token import Token
from zoo_transformer.output import Output


class LookupTable(NamedTuple):
    """Matrix [V, D] of an embedding, and the factor by which its rows are multiplied."""

    matrix: Tensor
    factor: float


@ByClass
def lookup_table(embedding: Embedding) -> LookupTable | None:
    """Return the table if `forward` computes nothing else, else None."""


@ByClass
def tied_matrix(embedding: Embedding) -> Tensor | None:
    """Return the matrix [V, D] if its product with states is `unembed`, else None."""


@lookup_table.register(Token)
def _token(embedding: Token) -> LookupTable | None:
    if embedding.map is not None or embedding.segments is not None:
        return None
    return LookupTable(embedding.table.weight, embedding.scale)


@tied_matrix.register(Token)
def _tied_token(embedding: Token) -> Tensor | None:
    return embedding.table.weight if embedding.map is None else None


def output_matrix(output: Output) -> Tensor | None:
    """Return the matrix [V, D] if the logits are its product with the states, else None."""
    if output.bias is not None or output.scale != 1:
        return None
    if output.cap is not None or output.transform is not None:
        return None
    if output.embedding is not None:
        return tied_matrix(output.embedding)
    assert output.map is not None
    return output.map.weight
