"""Benchmarks of the Transformer."""

from zoo_lab.benchmarks.transformer.benchmark_attention import ScaledDotAttention
from zoo_lab.benchmarks.transformer.benchmark_beam_generation import BeamGeneration
from zoo_lab.benchmarks.transformer.benchmark_composed import ComposedTransformer
from zoo_lab.benchmarks.transformer.benchmark_generation_cpu import GreedyGenerationCpu
from zoo_lab.benchmarks.transformer.benchmark_greedy_generation import GreedyGeneration
from zoo_lab.benchmarks.transformer.benchmark_llama_decoding import LlamaDecoding
from zoo_lab.benchmarks.transformer.benchmark_training import TrainingStep

BENCHMARKS = (
    ScaledDotAttention,
    ComposedTransformer,
    GreedyGeneration,
    GreedyGenerationCpu,
    BeamGeneration,
    LlamaDecoding,
    TrainingStep,
)
