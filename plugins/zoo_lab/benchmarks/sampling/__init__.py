"""Benchmarks of filters."""

from zoo_lab.benchmarks.sampling.benchmark_top_k import TopKBenchmark
from zoo_lab.benchmarks.sampling.benchmark_top_p import TopPBenchmark

BENCHMARKS = (
    TopKBenchmark,
    TopPBenchmark,
)
