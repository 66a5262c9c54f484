"""Benchmarks of word2vec."""

from zoo_lab.benchmarks.word2vec.benchmark_word2vec import Word2VecBenchmark

BENCHMARKS = (Word2VecBenchmark,)
