"""Benchmark of beam search."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from zoo_lab.benchmarks.transformer.benchmark_greedy_generation import GreedyGeneration


class BeamGeneration(GreedyGeneration):
    """Beam search of width 4 with an encoder-decoder Transformer, against transformers' `generate`.

    Args:
        batch: number of items.
        source_length: length of the sources.
        length: number of generated tokens.
        layers: number of blocks of encoder and decoder.
        dim: width of the states.
        hidden: width of the feed-forward networks.
        heads: number of heads.
        vocab: vocabulary size.
    """

    name: ClassVar[str] = "beam-generation"
    target: ClassVar[float | None] = 6.0
    peer_targets: ClassVar[Mapping[str, float]] = {}
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"batch": (1, 8, 64, 512)}
    sampler_spec: ClassVar[Mapping[str, Any]] = {"type": "beam", "width": 4, "n_best": 1}
