"""Benchmarks of imported models."""

from zoo_lab.benchmarks.huggingface.benchmark_loading import Loading

BENCHMARKS = (Loading,)
