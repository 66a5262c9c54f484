"""Benchmarks of additive attention."""

from zoo_lab.benchmarks.bahdanau.benchmark_additive import AdditiveAttentionBenchmark
from zoo_lab.benchmarks.bahdanau.benchmark_additive_cpu import AdditiveAttentionCpu
from zoo_lab.benchmarks.bahdanau.benchmark_additive_cpu_forward import AdditiveAttentionCpuForward

BENCHMARKS = (
    AdditiveAttentionBenchmark,
    AdditiveAttentionCpu,
    AdditiveAttentionCpuForward,
)
