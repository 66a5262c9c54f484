"""Vaswani et al. 2017: scaled dot-product attention and the Transformer."""

from collections.abc import Sequence

from zoo.plugin import Benchmark, Decoder, Encoder, Scorer, hookimpl
from zoo_transformer.benchmark_beam_generation import BeamGeneration
from zoo_transformer.benchmark_generation_cpu import GreedyGenerationCpu
from zoo_transformer.benchmark_greedy_generation import GreedyGeneration
from zoo_transformer.benchmark_llama_decoding import LlamaDecoding
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder


@hookimpl
def zoo_components() -> Sequence[type[Scorer] | type[Encoder] | type[Decoder] | type[Benchmark]]:
    return [
        ScaledDot,
        TransformerEncoder,
        TransformerDecoder,
        GreedyGeneration,
        GreedyGenerationCpu,
        BeamGeneration,
        LlamaDecoding,
    ]
