"""Benchmarks of language models."""

from zoo_lab.benchmarks.language.benchmark_decoding_step import DecodingStep
from zoo_lab.benchmarks.language.benchmark_decoding_variants import DecodingVariants
from zoo_lab.benchmarks.language.benchmark_first_token import FirstToken
from zoo_lab.benchmarks.language.benchmark_gpt2_generation import Gpt2Generation
from zoo_lab.benchmarks.language.benchmark_language_training import LanguageTraining
from zoo_lab.benchmarks.language.benchmark_varied_lengths import VariedLengths

BENCHMARKS = (
    DecodingStep,
    DecodingVariants,
    FirstToken,
    Gpt2Generation,
    LanguageTraining,
    VariedLengths,
)
