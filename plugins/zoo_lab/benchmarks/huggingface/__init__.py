"""Benchmarks of imported models."""

from zoo_lab.benchmarks.huggingface.benchmark_imported import ImportedModel
from zoo_lab.benchmarks.huggingface.benchmark_loading import Loading

BENCHMARKS = (ImportedModel, Loading)
