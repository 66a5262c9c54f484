"""Benchmarks of recurrent models."""

from zoo_lab.benchmarks.recurrent.benchmark_bahdanau import BahdanauModel

BENCHMARKS = (BahdanauModel,)
