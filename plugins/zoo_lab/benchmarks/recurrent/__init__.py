"""Benchmarks of recurrent models."""

from zoo_lab.benchmarks.recurrent.benchmark_bahdanau import BahdanauModel
from zoo_lab.benchmarks.recurrent.benchmark_recurrent_training import RecurrentTraining

BENCHMARKS = (BahdanauModel, RecurrentTraining)
