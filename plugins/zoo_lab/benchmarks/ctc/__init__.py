"""Benchmarks of the CTC loss and its beam search."""

from zoo_lab.benchmarks.ctc.benchmark_ctc_beam import CtcBeamBenchmark
from zoo_lab.benchmarks.ctc.benchmark_ctc_beam_cpu import CtcBeamCpuBenchmark
from zoo_lab.benchmarks.ctc.benchmark_ctc_loss import CtcLossBenchmark
from zoo_lab.benchmarks.ctc.benchmark_ctc_loss_cpu import CtcLossCpuBenchmark

BENCHMARKS = (
    CtcLossBenchmark,
    CtcLossCpuBenchmark,
    CtcBeamBenchmark,
    CtcBeamCpuBenchmark,
)
