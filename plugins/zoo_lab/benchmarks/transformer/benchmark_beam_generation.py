"""Benchmark of beam search."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from zoo_lab.benchmarks.transformer.seq2seq_generation import Seq2SeqGeneration


class BeamGeneration(Seq2SeqGeneration):
    """Beam search of width 4 with an encoder-decoder Transformer, against transformers' `generate`.

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

    name: ClassVar[str] = "beam-generation"
    target: ClassVar[float | None] = 6.0
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"batch": (1, 8, 64, 512)}
    sampler_spec: ClassVar[Mapping[str, Any]] = {"type": "beam", "width": 4, "n_best": 1}
