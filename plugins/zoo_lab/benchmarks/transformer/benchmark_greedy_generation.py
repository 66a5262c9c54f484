"""Benchmark of greedy generation."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from zoo_lab.benchmarks.transformer.seq2seq_generation import Seq2SeqGeneration


class GreedyGeneration(Seq2SeqGeneration):
    """Greedy generation with an encoder-decoder Transformer, against transformers' `generate`.

    Args:
        batch: number of items.
        length: number of generated tokens.
        source_length: length of the sources.
        layers: number of blocks of encoder and decoder.
        dim: width of the states.
        hidden: width of the feed-forward networks.
        heads: number of heads.
        vocab: vocabulary size.
    """

    name: ClassVar[str] = "greedy-generation"
    target: ClassVar[float | None] = 2.8
    peer_targets: ClassVar[Mapping[str, float]] = {"transformers": 9.0}
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "batch": (1, 8, 64, 512),
        "length": (32, 128, 512),
    }
    sampler_spec: ClassVar[Mapping[str, Any]] = {"type": "greedy"}
